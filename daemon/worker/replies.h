// SPDX-License-Identifier: Apache-2.0
// The worker's end of the reply ring. Any thread may send: driver callbacks, builds, the session
// thread. Nobody waits for room: what does not fit is kept, in order, and a thread of our own feeds
// it in when the client has made room. The replies that can wait are bounded by the commands in
// flight. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "proto/command.pb.h"
#include "proto/frame.h"
#include "proto/ring_writer.h"

namespace sluice::worker {

namespace pb = v1;

// Beyond this the client is taken to be gone or hostile: it never drains, and the session ends.
inline constexpr uint64_t kMaxWaitingReplyBytes = uint64_t{2} << 30;

class Replies {
 public:
  // `ring` is a mapping of kRingFileBytes; null in tests that look at Sent().
  explicit Replies(uint8_t* ring);

  void Send(const pb::Reply& reply, wire::Wake wake, std::string_view payload = {},
            uint32_t flags = 0, wire::BulkSpan bulk = {});

  // A client that waits for an answer or a completion looks without sleep for a moment: one is
  // expected soon.
  void WakeWaiter();

  // Called once, from any thread, when violated() has become true. Set before anything is sent.
  void set_on_violated(std::function<void()> on_violated) { on_violated_ = std::move(on_violated); }

  // The session ends before the process (a pool's): nothing more is sent. Afterwards `feeding` turns
  // false, and no thread of ours is in here.
  void Close();
  bool feeding() {
    absl::MutexLock lock(&mu_);
    return feeding_;
  }

  // Bytes waiting for room exceed the bound, or the client's cursor was impossible.
  bool violated() const { return violated_.load(std::memory_order_relaxed); }

 private:
  struct WaitingPiece {
    wire::PieceHeader header;
    std::string body;
    wire::Wake wake;
  };

  void FeedLoop();
  void CheckViolatedLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WaitForRoom(size_t body_bytes);

  std::function<void()> on_violated_;
  absl::Mutex mu_;
  wire::RingWriter writer_ ABSL_GUARDED_BY(mu_);
  std::deque<WaitingPiece> waiting_ ABSL_GUARDED_BY(mu_);
  uint64_t waiting_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  std::string buffer_ ABSL_GUARDED_BY(mu_);  // Encoding space, reused.
  bool feeding_ ABSL_GUARDED_BY(mu_) = false;
  std::atomic<bool> violated_ = false;
};

}  // namespace sluice::worker
