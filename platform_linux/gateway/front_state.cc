// SPDX-License-Identifier: Apache-2.0
#include "platform_linux/gateway/front_state.h"

#include <time.h>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "broker/base/log.h"

namespace sluice::gateway {
namespace {

constexpr int kFrontLinesPerSecond = 5;

}  // namespace

int64_t MonotonicMs() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

void PeerTable::Add(int number, std::shared_ptr<PeerRecord> record) {
  absl::MutexLock lock(&mu_);
  records_[number] = std::move(record);
}

void PeerTable::Remove(const PeerRecord* record) {
  absl::MutexLock lock(&mu_);
  for (auto it = records_.begin(); it != records_.end(); ++it) {
    if (it->second.get() != record) continue;
    records_.erase(it);
    return;
  }
}

std::shared_ptr<PeerRecord> PeerTable::Find(const std::string& grpc_peer) const {
  absl::string_view text = grpc_peer;
  int number = -1;
  if (!absl::ConsumePrefix(&text, "fd:") || !absl::SimpleAtoi(text, &number)) return nullptr;
  absl::MutexLock lock(&mu_);
  const auto found = records_.find(number);
  return found == records_.end() ? nullptr : found->second;
}

void FrontLog::Refused(const std::string& address, std::string_view why) {
  int64_t left_out = 0;
  {
    absl::MutexLock lock(&mu_);
    const int64_t second = MonotonicMs() / 1000;
    if (second != second_) lines_ = 0;
    second_ = second;
    if (++lines_ > kFrontLinesPerSecond) {
      ++left_out_;
      return;
    }
    left_out = std::exchange(left_out_, 0);
  }
  Log(LogLevel::kWarning, "gateway", "connection refused",
      {{"peer", address}, {"reason", std::string(why)}, {"suppressed", left_out}});
}

}  // namespace sluice::gateway
