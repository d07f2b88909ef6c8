// SPDX-License-Identifier: Apache-2.0
#include "broker/children/memory_grants.h"

#include <algorithm>

namespace sluice::broker {
namespace {

// Grants this part of the free memory beyond what is wanted, so that fewer and fewer creations ask.
// It is a part, so that the last bytes are not left with sessions that do not need them.
constexpr uint64_t kPartAhead = 4;

}  // namespace

void MemoryGrants::Add(uint64_t session, const std::string& account, uint64_t limit) {
  Account& of = accounts_[account];
  of.limit = limit;
  of.sessions.insert(session);
  sessions_[session].account = account;
}

void MemoryGrants::Remove(uint64_t session, int64_t now_ms) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  const auto account = accounts_.find(found->second.account);
  Account& of = account->second;
  of.granted -= found->second.granted;
  of.sessions.erase(session);
  std::erase_if(of.waiting, [session](const Waiting& one) { return one.session == session; });
  Answered(&of, &found->second, now_ms);
  sessions_.erase(found);
  Serve(&of);
  if (of.sessions.empty()) accounts_.erase(account);
}

bool MemoryGrants::Want(uint64_t session, uint64_t serial, uint64_t bytes, bool ahead,
                        int64_t now_ms) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end() || found->second.waits) return false;
  Account& of = accounts_[found->second.account];
  const uint64_t spare = of.waiting.empty() ? of.free() : 0;
  if (ahead) {
    Grant(&of, session, serial, std::min(bytes, spare / kPartAhead));
  } else if (bytes <= of.free()) {
    Grant(&of, session, serial, bytes + (spare > bytes ? (spare - bytes) / kPartAhead : 0));
  } else if (bytes > of.limit || of.granted == found->second.granted) {
    Grant(&of, session, serial, 0);  // Nobody can give back what it needs.
  } else {
    found->second.waits = true;
    of.waiting.push_back({session, serial, bytes, of.rounds + 1});
    if (of.round_end_ms == 0 && now_ms >= of.next_round_ms) StartRound(&of, now_ms);
  }
  return true;
}

bool MemoryGrants::Return(uint64_t session, uint64_t bytes, int64_t now_ms) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end() || bytes > found->second.granted) return false;
  // It may answer a round that has ended without it, too, but only once.
  if (!found->second.asked_back) return false;
  Account& of = accounts_[found->second.account];
  found->second.granted -= bytes;
  of.granted -= bytes;
  Answered(&of, &found->second, now_ms);
  Serve(&of);
  return true;
}

void MemoryGrants::Grant(Account* account, uint64_t session, uint64_t serial, uint64_t bytes) {
  account->granted += bytes;
  sessions_[session].granted += bytes;
  sender_.grant(session, serial, bytes);
}

void MemoryGrants::Answered(Account* account, Session* session, int64_t now_ms) {
  if (!session->asked_back) return;
  session->asked_back = false;
  if (account->round_end_ms != 0 && --account->unanswered == 0) EndRound(account, now_ms);
}

void MemoryGrants::StartRound(Account* account, int64_t now_ms) {
  ++account->rounds;
  account->round_end_ms = now_ms + kRoundMs;
  account->unanswered = 0;
  for (const uint64_t id : account->sessions) {
    Session& session = sessions_[id];
    // One that has not answered the last time is asked no second time.
    if (session.granted == 0 || session.waits || session.asked_back) continue;
    session.asked_back = true;
    ++account->unanswered;
    sender_.ask_back(id);
  }
  if (account->unanswered == 0) EndRound(account, now_ms);
}

void MemoryGrants::EndRound(Account* account, int64_t now_ms) {
  account->round_end_ms = 0;
  account->unanswered = 0;
  account->next_round_ms = now_ms + kBetweenRoundsMs;
  Serve(account);
}

void MemoryGrants::Serve(Account* account) {
  std::deque<Waiting> left;
  for (const Waiting& one : account->waiting) {
    const bool fits = one.bytes <= account->free();
    const uint64_t ended = account->rounds - (account->round_end_ms != 0 ? 1 : 0);
    if (!fits && one.round > ended) {
      left.push_back(one);
      continue;
    }
    sessions_[one.session].waits = false;
    Grant(account, one.session, one.serial, fits ? one.bytes : 0);
  }
  account->waiting = std::move(left);
}

std::optional<int64_t> MemoryGrants::NextDueMs() const {
  std::optional<int64_t> due;
  for (const auto& [name, account] : accounts_) {
    if (account.waiting.empty() && account.round_end_ms == 0) continue;
    const int64_t own = account.round_end_ms != 0 ? account.round_end_ms : account.next_round_ms;
    due = std::min(due.value_or(own), own);
  }
  return due;
}

void MemoryGrants::AdvanceTo(int64_t now_ms) {
  for (auto& [name, account] : accounts_) {
    if (account.round_end_ms != 0 && now_ms >= account.round_end_ms) EndRound(&account, now_ms);
    if (account.round_end_ms == 0 && !account.waiting.empty() && now_ms >= account.next_round_ms)
      StartRound(&account, now_ms);
  }
}

uint64_t MemoryGrants::GrantedTo(uint64_t session) const {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? 0 : found->second.granted;
}

uint64_t MemoryGrants::GrantedIn(const std::string& account) const {
  const auto found = accounts_.find(account);
  return found == accounts_.end() ? 0 : found->second.granted;
}

}  // namespace sluice::broker
