// SPDX-License-Identifier: Apache-2.0
// Frames on their way to the network, cut into messages. One message at a time is with gRPC; the rest waits here.
// Owned by RemoteTransport. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/frame.h"

namespace sluice {

class RemoteOutbox {
 public:
  // A message is closed when it has this many bytes.
  static constexpr size_t kMessageBytes = 1 << 20;

  void Append(const FrameHeader& header, std::string_view message, std::string_view payload);

  // The next message's pieces, which are then being written. False: there is none, or one is being written.
  bool Take(std::string* pieces);
  void Written();

  size_t bytes() const { return bytes_.load(std::memory_order_seq_cst); }  // Waiting.
  bool writing() const { return writing_.load(std::memory_order_seq_cst); }
  // Waits until something has been written, or `timeout` has passed.
  void AwaitWritten(absl::Duration timeout);

 private:
  absl::Mutex mu_;
  absl::CondVar written_;
  std::deque<std::string> messages_ ABSL_GUARDED_BY(mu_);
  std::atomic<size_t> bytes_{0};       // Changed under mu_.
  std::atomic<bool> writing_{false};
};

}  // namespace sluice
