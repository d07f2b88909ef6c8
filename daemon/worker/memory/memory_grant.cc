// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/memory/memory_grant.h"

#include <algorithm>

#include "absl/time/time.h"
#include "proto/spin.h"

namespace sluice::worker {
namespace {

// A broker answers at once, or after a round of questions to the account's other workers.
constexpr absl::Duration kPatience = absl::Seconds(5);
constexpr int64_t kBetweenQuestionsNs = 20'000'000;
constexpr int64_t kQuestionsAtOnce = 50;
constexpr uint64_t kMostPromised = 4 << 20;
constexpr uint64_t kPromisedPart = 256;  // Of the account's limit.

}  // namespace

void MemoryGrant::Attach(Broker broker, uint64_t account_limit) {
  broker_ = std::move(broker);
  most_promised_ = std::min(kMostPromised, account_limit / kPromisedPart);
  attached_ = true;
}

bool MemoryGrant::Cover(uint64_t total) {
  absl::MutexLock lock(&mu_);
  while (granted_ < total) {
    if (lost_) return false;
    const bool own = !asking_;
    if (own) {
      Pace();
      // Another thread may have asked meanwhile, or the broker granted what was asked before.
      if (asking_ || granted_ >= total) continue;
      if (!Ask(total - granted_, /*ahead=*/false)) return false;
    }
    const uint64_t asked = serial_;
    const auto answered = [this, asked]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return lost_ || !asking_ || serial_ != asked;
    };
    if (!mu_.AwaitWithTimeout(absl::Condition(&answered), kPatience)) return false;
    if (own && granted_ < total) return false;
  }
  AskAhead(total);
  return true;
}

bool MemoryGrant::Ask(uint64_t bytes, bool ahead) {
  asking_ = true;
  wanted_ = ahead ? 0 : bytes;
  lost_ = !broker_.want(++serial_, bytes, ahead);
  return !lost_;
}

void MemoryGrant::AskAhead(uint64_t total) {
  if (asking_ || lost_ || ahead_ == 0 || granted_ - total > ahead_ / 4) return;
  const int64_t now = wire::MonotonicNs();
  if (next_question_ns_ - now > kQuestionsAtOnce / 2 * kBetweenQuestionsNs) return;
  next_question_ns_ = std::max(next_question_ns_, now) + kBetweenQuestionsNs;
  Ask(ahead_, /*ahead=*/true);
}

void MemoryGrant::Pace() {
  const int64_t now = wire::MonotonicNs();
  const int64_t ahead_of_time = next_question_ns_ - now - kQuestionsAtOnce * kBetweenQuestionsNs;
  next_question_ns_ = std::max(next_question_ns_, now) + kBetweenQuestionsNs;
  if (ahead_of_time <= 0) return;
  const auto lost = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return lost_; };
  mu_.AwaitWithTimeout(absl::Condition(&lost), absl::Nanoseconds(ahead_of_time));
}

uint64_t MemoryGrant::Spare() const {
  const uint64_t kept = used_.load(std::memory_order_relaxed) + promised_;
  return granted_ > kept ? granted_ - kept : 0;
}

uint64_t MemoryGrant::Promise() {
  absl::MutexLock lock(&mu_);
  promised_ = 0;
  promised_ = std::min(Spare(), most_promised_);
  return promised_;
}

void MemoryGrant::OnGranted(uint64_t serial, uint64_t bytes) {
  absl::MutexLock lock(&mu_);
  granted_ += bytes;
  if (serial != serial_) return;  // Nobody waits for it any more.
  ahead_ = bytes > wanted_ ? bytes - wanted_ : 0;
  asking_ = false;
}

void MemoryGrant::OnSpare() {
  absl::MutexLock lock(&mu_);
  const uint64_t bytes = Spare();
  granted_ -= bytes;
  ahead_ = 0;  // The account is at its limit.
  broker_.give_back(bytes);
}

void MemoryGrant::OnLost() {
  absl::MutexLock lock(&mu_);
  lost_ = true;
}

}  // namespace sluice::worker
