// SPDX-License-Identifier: Apache-2.0
//
// The needs of the daemon's own process from the system before it serves. Call from the main
// thread, before other threads are started.
#pragma once

#include <string>

namespace sluice::os {

// Opens those of the descriptors 0, 1 and 2 that are closed: the first socket must not become
// "stderr". They stay closed for programs that this one becomes or starts, and printing to such a
// stdout fails.
void EnsureStandardDescriptors();

// Makes children's exit codes available: a parent that ignores SIGCHLD passes that on over exec,
// and they would be lost. True if it was so.
bool ReceiveChildSignals();

// The first process of a container (PID 1) inherits every orphan of it, which stays a zombie until
// PID 1 reaps it. If this process is one, this forks and returns in the child only. The parent
// reaps whatever ends, passes SIGTERM, SIGINT and SIGHUP on, and ends as the child does. The child
// gets the service manager's variables as its own (LISTEN_PID).
void LeaveFirstProcess();

// Blocks the signals that StopSignals reads, raises the limit of descriptors as far as it goes,
// turns off the system's dialogs.
void PrepareDaemonProcess();

// Removes a variable from this process's environment.
void ForgetVariable(const char* name);

// Runs the program at `path` in this process's place, with argv[1] and on. Where a process cannot
// be replaced (Windows), runs it as a child and returns its exit code. If it cannot be run, prints
// a line on stderr and returns -1.
int BecomeProgram(const std::string& path, char** argv);

}  // namespace sluice::os
