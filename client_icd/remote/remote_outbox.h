// SPDX-License-Identifier: Apache-2.0
// Frames on their way to the network, cut into messages. One message at a time is with gRPC; the
// rest waits here. Owned by RemoteTransport. Thread-safe. Slices that Take gave out may outlive it.
#pragma once

#include <grpcpp/support/slice.h>

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/frame.h"

namespace sluice::client {

class RemoteOutbox {
 public:
  // A message is closed when it has this many bytes.
  static constexpr size_t kMessageBytes = 1 << 20;

  void Append(const wire::FrameHeader& header, std::string_view message, std::string_view payload);

  // The next message's pieces, which are then being written. False: there is none, or one is being
  // written.
  bool Take(grpc::Slice* pieces);
  // A write that Take did not give out has begun.
  void SetWriting();
  void Written();

  size_t bytes() const { return bytes_.load(std::memory_order_seq_cst); }  // Waiting.
  bool writing() const { return writing_.load(std::memory_order_seq_cst); }
  // Waits until something has been written, or `timeout` has passed.
  void AwaitWritten(absl::Duration timeout);

 private:
  // Large buffers that gRPC has let go of: touching fresh memory costs as much as filling it.
  class Pool {
   public:
    std::string Get();
    void Put(std::string buffer);

   private:
    absl::Mutex mu_;
    std::vector<std::string> buffers_ ABSL_GUARDED_BY(mu_);
  };
  struct Loan {
    std::shared_ptr<Pool> pool;
    std::string pieces;
  };

  const std::shared_ptr<Pool> pool_ = std::make_shared<Pool>();
  absl::Mutex mu_;
  absl::CondVar written_;
  std::deque<std::string> messages_ ABSL_GUARDED_BY(mu_);
  std::atomic<size_t> bytes_{0};  // Changed under mu_.
  std::atomic<bool> writing_{false};
};

}  // namespace sluice::client
