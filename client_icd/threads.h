// SPDX-License-Identifier: Apache-2.0
// Starts the driver's own threads inside a stranger's process: detached, named for debuggers, with
// every signal but faults blocked, so that the application's signal handlers do not run on them.
// Thread-safe.
#pragma once

#include <functional>

namespace sluice {

// False if the system has no thread to give.
bool StartThread(const char* name, std::function<void()> body);

// The calling thread's number, and whether the thread of that number sleeps in a call of the
// system.
int ThisThreadNumber();
bool ThreadSleeps(int number);

}  // namespace sluice
