// SPDX-License-Identifier: Apache-2.0
#include "broker/os/lasting_thread.h"

#include <utility>

#include "broker/os/threads.h"

namespace sluice::os {

bool IoEndsWithItsThread() { return false; }

bool StartOnLastingThread(std::function<void()> body) {
  return StartThread("sluice-lasting", std::move(body));
}

void RunWhereIoLasts(const std::function<void()>& body) { body(); }

}  // namespace sluice::os
