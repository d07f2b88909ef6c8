// SPDX-License-Identifier: Apache-2.0
#include "daemon/gateway/front/http2_gate.h"

#include <algorithm>

namespace sluice::gateway {
namespace {

// gRPC says 64 in its settings, which clients wait for before they begin calls.
constexpr size_t kMostOpen = 128;
constexpr size_t kMostOpenOfNewcomer = 8;
constexpr size_t kMostBlockBytes = 64 * 1024;  // gRPC takes 8 KiB of headers.
constexpr int kMostBlockFrames = 16;
constexpr uint32_t kMostSettingsBytes = 1024;  // There are 6 of 6 bytes, and gRPC's own.
constexpr uint32_t kSmallDataBytes = 32;

// Of one connection. A session is one call, and so is a list of devices. Few, since whoever ends a
// connection has them anew with the next one.
constexpr Allowance kOwnCalls = {16, 5};
constexpr Allowance kNewcomerCalls = {4, 1};
constexpr Allowance kNewcomerBytes = {64 * 1024, 16 * 1024};
// Pings and settings: each is answered.
constexpr Allowance kQuestions = {256, 100};
// Window updates, empty data and what has no meaning. A client that takes several GB/s sends some
// thousands.
constexpr Allowance kSmall = {16 * 1024, 50'000};

}  // namespace

Http2Gate::Http2Gate(SharedBudget* shared_calls)
    : shared_calls_(shared_calls),
      own_calls_(kOwnCalls),
      newcomer_calls_(kNewcomerCalls),
      newcomer_bytes_(kNewcomerBytes),
      own_questions_(kQuestions),
      own_small_(kSmall) {}

Http2Gate::Verdict Http2Gate::OnClient(std::string_view bytes, int64_t now_ms) {
  Verdict verdict;
  verdict.passed = from_client_.Take(bytes, [&](const wire::FrameCutter::Header& frame) {
    verdict.wait_ms = OnClientFrame(frame, now_ms);
    return verdict.wait_ms == 0 && offence_.empty();
  });
  if (trusted_) return verdict;
  const int64_t wait_ms = newcomer_bytes_.Spend(static_cast<double>(verdict.passed), now_ms);
  verdict.wait_ms = std::max(verdict.wait_ms, wait_ms);
  return verdict;
}

int64_t Http2Gate::OnClientFrame(const wire::FrameCutter::Header& frame, int64_t now_ms) {
  switch (frame.type) {
    case wire::http2::kHeaders:
    case wire::http2::kContinuation:
      return OnHeaders(frame, now_ms);
    case wire::http2::kResetStream:
      open_.erase(frame.stream);
      return OnCall(now_ms);  // As much work.
    case wire::http2::kSettings:
      if (frame.size > kMostSettingsBytes) offence_ = "settings without an end";
      [[fallthrough]];
    case wire::http2::kPing:
      return (frame.flags & wire::http2::kAck) != 0 ? own_small_.Spend(1, now_ms)
                                                    : own_questions_.Spend(1, now_ms);
    case wire::http2::kData:
      // A client that has ended its side still has the call.
      return frame.size <= kSmallDataBytes ? own_small_.Spend(1, now_ms) : 0;
    default:
      return own_small_.Spend(1, now_ms);
  }
}

int64_t Http2Gate::OnCall(int64_t now_ms) {
  if (!trusted_) return newcomer_calls_.Spend(1, now_ms);
  const double beyond = own_calls_.Take(1, now_ms);
  return beyond > 0 ? shared_calls_->Spend(beyond, now_ms) : 0;
}

int64_t Http2Gate::OnHeaders(const wire::FrameCutter::Header& frame, int64_t now_ms) {
  if (frame.type == wire::http2::kHeaders) {
    block_bytes_ = 0;
    block_frames_ = 0;
    if (frame.stream > last_stream_) {
      last_stream_ = frame.stream;
      open_.insert(frame.stream);
      if (open_.size() > (trusted_ ? kMostOpen : kMostOpenOfNewcomer))
        offence_ = trusted_ ? "more calls at once than it may have"
                            : "more calls at once than a client has that is not known yet";
    }
  }
  block_bytes_ += wire::FrameCutter::kHeaderBytes + frame.size;
  ++block_frames_;
  if (block_bytes_ > kMostBlockBytes || block_frames_ > kMostBlockFrames)
    offence_ = "headers without an end";
  if ((frame.flags & wire::http2::kEndHeaders) != 0) block_bytes_ = 0;
  return frame.type == wire::http2::kHeaders ? OnCall(now_ms) : 0;
}

void Http2Gate::OnServer(std::string_view bytes) {
  from_server_.Take(bytes, [this](const wire::FrameCutter::Header& frame) {
    const bool ends = (frame.type == wire::http2::kData || frame.type == wire::http2::kHeaders) &&
                      (frame.flags & wire::http2::kEndStream);
    if (ends || frame.type == wire::http2::kResetStream) open_.erase(frame.stream);
    return true;
  });
}

}  // namespace sluice::gateway
