// SPDX-License-Identifier: Apache-2.0
// Threads that last as long as the process. Windows cancels the I/O that a thread has begun
// (WSARecv) when the thread ends, and an application's may end at any time. So a library whose
// reads outlive the calls that begin them, as gRPC's do, may be called on these threads only.
// Thread-safe.
#pragma once

#include <functional>

namespace sluice::os {

// True if I/O ends with the thread that has begun it. Constant.
bool IoEndsWithItsThread();

// Runs `body` on a lasting thread of its own; the thread may run other bodies later. False: the
// system has no thread to give.
bool StartOnLastingThread(std::function<void()> body);

// Runs `body` and returns when it is done: here, or on a lasting thread if I/O ends with its
// thread. Here too if there is no such thread to be had.
void RunWhereIoLasts(const std::function<void()>& body);

}  // namespace sluice::os
