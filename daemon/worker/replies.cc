// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/replies.h"

#include "broker/os/threads.h"

namespace sluice::worker {

Replies::Replies(uint8_t* ring) : writer_(ring) {}

void Replies::Send(const pb::Reply& reply, wire::Wake wake, std::string_view payload,
                   uint32_t flags, wire::BulkSpan bulk) {
  absl::MutexLock lock(&mu_);
  if (violated_) return;  // The session ends; until it has, nothing piles up.
  const size_t message_bytes = reply.ByteSizeLong();
  buffer_.resize(message_bytes);
  reply.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(buffer_.data()));
  wire::FrameHeader header = {};
  header.message_bytes = static_cast<uint32_t>(message_bytes);
  header.flags = flags;
  header.payload_bytes = payload.size();
  header.bulk_segment = bulk.segment;
  header.bulk_offset = bulk.offset;
  header.bulk_bytes = bulk.size;
  wire::CutFrame(header, buffer_, payload, wire::kMaxPieceBody,
                 [&](const wire::PieceHeader& piece, std::string_view a, std::string_view b,
                     std::string_view c) {
                   mu_.AssertHeld();
                   if (waiting_.empty() && writer_.TryWritePiece(piece, a, b, c)) return true;
                   std::string body;
                   body.reserve(piece.body_bytes);
                   body.append(a).append(b).append(c);
                   waiting_bytes_ += body.size();
                   waiting_.push_back({piece, std::move(body), wake});
                   return true;
                 });
  writer_.Notify(wake, reply.has_completion() ? reply.completion().event_id() : 0);
  CheckViolatedLocked();
  if (!waiting_.empty() && !feeding_) {
    feeding_ = true;
    os::StartDetached(
        [this] { FeedLoop(); });  // Lives as long as something waits; the worker ends by _exit.
  }
}

void Replies::WakeWaiter() {
  absl::MutexLock lock(&mu_);
  writer_.Notify(wire::Wake::kWaiter, 0);
}

void Replies::Close() {
  absl::MutexLock lock(&mu_);
  violated_ = true;
  waiting_.clear();
  writer_.WakeWriter();
}

void Replies::CheckViolatedLocked() {
  if (violated_ || (waiting_bytes_ <= kMaxWaitingReplyBytes && !writer_.violated())) return;
  violated_ = true;
  waiting_.clear();
  if (on_violated_) on_violated_();
}

// Nobody else writes while something waits, so that the writer's cursor is stable without the lock.
void Replies::WaitForRoom(size_t body_bytes) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  writer_.WaitForRoom(body_bytes, -1);
}

void Replies::FeedLoop() {
  while (true) {
    size_t next_bytes = 0;
    {
      absl::MutexLock lock(&mu_);
      while (!waiting_.empty()) {
        const WaitingPiece& piece = waiting_.front();
        if (!writer_.TryWritePiece(piece.header, piece.body, {}, {})) break;
        waiting_bytes_ -= piece.body.size();
        waiting_.pop_front();
      }
      CheckViolatedLocked();
      if (waiting_.empty() || violated_) {
        feeding_ = false;
        // The bell may have been for pieces that were not there yet.
        writer_.Notify(wire::Wake::kUrgent, 0);
        return;
      }
      next_bytes = waiting_.front().header.body_bytes;
      writer_.Notify(wire::Wake::kUrgent, 0);
    }
    WaitForRoom(next_bytes);
  }
}

}  // namespace sluice::worker
