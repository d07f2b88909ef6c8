// SPDX-License-Identifier: Apache-2.0
#include "broker/resources/turns.h"

#include <utility>

namespace sluice::broker {

void ResourceTurns::Request(uint64_t ticket, ResourceAccess access) {
  waiting_.emplace(ticket, access);
  GrantFromFront();
}

std::vector<uint64_t> ResourceTurns::TakeGranted() { return std::exchange(granted_, {}); }

void ResourceTurns::End(uint64_t ticket, Contents contents) {
  const auto held = holders_.find(ticket);
  if (held == holders_.end()) {
    waiting_.erase(ticket);
  } else {
    if (held->second == ResourceAccess::kWrite) {
      has_writer_ = false;
      if (contents != Contents::kUntouched) {
        ++generation_;
        indeterminate_ = contents == Contents::kIndeterminate;
      }
    }
    holders_.erase(held);
    std::erase(granted_, ticket);
  }
  GrantFromFront();  // Also after a wait that ended: it may have been what the rest stood behind.
}

void ResourceTurns::GrantFromFront() {
  while (!waiting_.empty() && !has_writer_) {
    const auto [ticket, access] = *waiting_.begin();
    if (access == ResourceAccess::kWrite && !holders_.empty()) return;
    waiting_.erase(waiting_.begin());
    holders_[ticket] = access;
    has_writer_ = access == ResourceAccess::kWrite;
    granted_.push_back(ticket);
  }
}

}  // namespace sluice::broker
