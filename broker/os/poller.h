// SPDX-License-Identifier: Apache-2.0
//
// Waits for many descriptors at once, for the event loop (epoll; on Windows waits of the thread
// pool). Level-triggered: a descriptor that nobody serves is reported again.
//
// Owner: EventLoop. Loop thread only, but for Wake, which any thread may call.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace sluice::os {

class Poller {
 public:
  enum class Interest {
    kReadable,  // It can be read, or is at its end.
    // Its other end hangs up; bytes that wait to be read stay unread. On Windows they are a hang-up
    // too: it is for pipes on which nobody sends. AwaitHangUp (local_socket.h) is for others.
    kHangUp,
  };

  static absl::StatusOr<std::unique_ptr<Poller>> Create();
  virtual ~Poller() = default;

  // Wait reports `key`, which is unique and not 0, whenever `fd` is ready, until Remove. The
  // descriptor stays the caller's and must be removed before it is closed.
  virtual absl::Status Add(uint64_t key, int fd, Interest interest) = 0;
  virtual void Remove(uint64_t key, int fd) = 0;

  // Fills `ready` with keys of ready descriptors, after at most `timeout_ms` (-1 = no limit); with
  // none after Wake or at the timeout.
  virtual void Wait(int timeout_ms, std::vector<uint64_t>* ready) = 0;
  // Ends the Wait that runs, or the next.
  virtual void Wake() = 0;
};

}  // namespace sluice::os
