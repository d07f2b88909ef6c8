// SPDX-License-Identifier: Apache-2.0
#include "broker/session_starts.h"

#include <iterator>
#include <utility>

namespace sluice::broker {

bool SessionStarts::HasRoom(const std::string& account) const {
  const auto own = starting_of_.find(account);
  return starting_.size() < most_in_all_ &&
         (own == starting_of_.end() || own->second < most_of_account_);
}

bool SessionStarts::Ask(const std::string& account, uint64_t owner, Start start) {
  const auto own = waiting_.find(account);
  if (own == waiting_.end() && HasRoom(account)) {
    Run(account, start);
    return true;
  }
  if (own != waiting_.end() && own->second.size() >= kMostWaiting) return false;
  waiting_[account].push_back({owner, std::move(start)});
  ++waiting_count_;
  return true;
}

void SessionStarts::Run(const std::string& account, const Start& start) {
  const uint64_t session = start();
  if (session == 0) return;
  starting_[session] = account;
  ++starting_of_[account];
}

void SessionStarts::Forget(uint64_t owner) {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    waiting_count_ -=
        std::erase_if(it->second, [owner](const Waiting& one) { return one.owner == owner; });
    it = it->second.empty() ? waiting_.erase(it) : std::next(it);
  }
}

void SessionStarts::Done(uint64_t session) {
  const auto found = starting_.find(session);
  if (found == starting_.end()) return;
  const auto own = starting_of_.find(found->second);
  if (--own->second == 0) starting_of_.erase(own);
  starting_.erase(found);
  StartWhileRoom();
}

void SessionStarts::StartWhileRoom() {
  // A round over all accounts, from the one after the last to start. Each start begins a new round.
  for (size_t looked_at = 0; looked_at < waiting_.size() && starting_.size() < most_in_all_;) {
    auto next = waiting_.upper_bound(last_);
    if (next == waiting_.end()) next = waiting_.begin();
    last_ = next->first;
    if (!HasRoom(last_)) {
      ++looked_at;
      continue;
    }
    looked_at = 0;
    const Start start = std::move(next->second.front().start);
    next->second.pop_front();
    --waiting_count_;
    if (next->second.empty()) waiting_.erase(next);
    Run(std::string(last_), start);
  }
}

}  // namespace sluice::broker
