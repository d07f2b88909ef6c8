// SPDX-License-Identifier: Apache-2.0
//
// What the daemon's process itself needs from the system before it serves. Call from the main
// thread, before other threads are started.
#pragma once

#include <string>

namespace sluice {

// 0, 1 and 2 are open afterwards: the first socket must not become "stderr".
void EnsureStandardDescriptors();

// Signals wait for StopSignals, as many descriptors as may be had, no dialogs of the system's.
void PrepareDaemonProcess();

// Runs the program at `path` in this process's place, with argv[1] and on. Returns only if that
// fails, or, where a process cannot be replaced, with the program's exit code; -1 and a line on
// stderr if it cannot be run.
int BecomeProgram(const std::string& path, char** argv);

}  // namespace sluice
