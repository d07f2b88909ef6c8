// SPDX-License-Identifier: Apache-2.0
// Descriptors that the client hands over to be imported: each comes over the handle channel under a
// token, before the command that names the token comes through the ring. Ring and channel are two
// ways, so that whoever looks for a token first takes what is in the channel.
//
// Owned by Session. The main thread takes when the channel is readable, the session thread when a
// command asks; a descriptor that no command asked for is closed with the process. Thread-safe.
// The peer is hostile: a message of another form, a second descriptor, a token twice, or more than
// kMaxWaiting that nobody asked for end the session. The command finds out what a descriptor is
// (broker/os/foreign_memory.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "broker/os/scoped_handle.h"

namespace sluice::worker {

class Imports {
 public:
  // An honest client waits for the answer to its command before it sends the next.
  static constexpr size_t kMaxWaiting = 64;

  explicit Imports(int handle_channel) : channel_(handle_channel) {}

  // Takes what is in the channel, without waiting. kAborted: the client has gone; any other error:
  // it broke the protocol.
  absl::Status Receive();

  // The descriptor that came under `token`, which is forgotten. An error is a violation.
  absl::StatusOr<os::UniqueFd> Take(uint64_t token);

 private:
  absl::Status ReceiveLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status ReceiveOneLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int channel_;
  absl::Mutex mu_;
  absl::flat_hash_map<uint64_t, os::UniqueFd> waiting_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice::worker
