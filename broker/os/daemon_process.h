// SPDX-License-Identifier: Apache-2.0
//
// What the daemon's process itself needs from the system before it serves. Call from the main
// thread, before other threads are started.
#pragma once

#include <string>

namespace sluice::os {

// 0, 1 and 2 are open afterwards: the first socket must not become "stderr". Programs that this one
// becomes or starts find closed what was closed, and who prints where nothing was open is told so.
void EnsureStandardDescriptors();

// Afterwards children can be waited for: a parent that ignores their ends (SIGCHLD) passes that on
// over exec, and exit codes are lost. True if it was so.
bool ReceiveChildSignals();

// The first process of a container (PID 1) inherits every orphan of it, which stays a zombie until
// that process asks for its end. If this is one, it goes on in a child, where this returns; itself
// it stays the first, reaps whatever ends, passes SIGTERM, SIGINT and SIGHUP on, and ends as the
// child does. What the service manager said to PID 1 (LISTEN_PID) is then said to the child.
void LeaveFirstProcess();

// Signals wait for StopSignals, as many descriptors as may be had, no dialogs of the system's.
void PrepareDaemonProcess();

// Takes a variable out of this process's environment.
void ForgetVariable(const char* name);

// Runs the program at `path` in this process's place, with argv[1] and on. Returns only if that
// fails, or, where a process cannot be replaced, with the program's exit code; -1 and a line on
// stderr if it cannot be run.
int BecomeProgram(const std::string& path, char** argv);

}  // namespace sluice::os
