// SPDX-License-Identifier: Apache-2.0
#include "broker/scheduling/turn_schedule.h"

#include <algorithm>
#include <utility>

namespace sluice::broker {

using wire::TurnOrder;

void TurnSchedule::Remove(uint64_t id) {
  const auto found = members_.find(id);
  if (found == members_.end()) return;
  const auto balance = balances_.find(found->second.account);
  if (--balance->second.members == 0) balances_.erase(balance);
  members_.erase(found);
  if (holder_ == id) holder_ = 0;
  if (last_holder_ == id) last_holder_ = 0;
}

void TurnSchedule::Join(uint64_t id, const TurnPayer& payer, Member* member) {
  member->account = payer.account.empty() ? std::to_string(id) : payer.account;
  member->share = payer.share;
  const auto [found, is_new] = balances_.try_emplace(member->account);
  member->balance = &found->second;
  ++member->balance->members;
  if (is_new) member->balance->used_ns = virtual_ns_;
  member->used_ns = member->balance->virtual_ns;
}

void TurnSchedule::Note(uint64_t id, const Says& says, int64_t now, const TurnPayer& payer) {
  const auto [found, is_new] = members_.try_emplace(id);
  Member& member = found->second;
  if (is_new) {
    Join(id, payer, &member);
    // With turns, the newest begins as the others: its first command waits.
    member.order = in_turns_ ? TurnOrder::kWait : TurnOrder::kFree;
    member.says = says;
  }
  if (says.submitted != member.says.submitted || says.running || says.waiting)
    member.active_ns = now;
  if (says.waiting && !member.says.waiting) {
    member.waits_since_ns = now;
    // Who comes late has saved up no more than a turn.
    Balance& balance = *member.balance;
    balance.used_ns = std::max(balance.used_ns, virtual_ns_ - settings_.turn_ns);
    member.used_ns = std::max(member.used_ns, balance.virtual_ns - settings_.turn_ns);
  }
  if (!says.waiting && member.says.waiting) member.had.waited_ns += now - member.waits_since_ns;
  member.says = says;
}

TurnOrder TurnSchedule::OrderOf(uint64_t id) const {
  const auto found = members_.find(id);
  return found == members_.end() ? TurnOrder::kFree : found->second.order;
}

TurnSchedule::State TurnSchedule::state(int64_t now) const {
  if (in_turns_) return State::kTurns;
  return now < no_turns_until_ns_ ? State::kLongWork : State::kNoTurns;
}

TurnSchedule::Had TurnSchedule::HadBy(uint64_t id) const {
  const auto found = members_.find(id);
  return found == members_.end() ? Had{} : found->second.had;
}

int TurnSchedule::CountActive(int64_t since) const {
  return static_cast<int>(std::count_if(members_.begin(), members_.end(), [since](const auto& one) {
    return one.second.active_ns > since;
  }));
}

uint64_t TurnSchedule::Next() const {
  uint64_t next = 0;
  std::pair<int64_t, int64_t> least;
  for (const auto& [id, member] : members_) {
    if (!member.says.waiting || id == holder_) continue;
    const std::pair<int64_t, int64_t> used = {member.balance->used_ns, member.used_ns};
    if (next != 0 && used >= least) continue;
    next = id;
    least = used;
  }
  return next;
}

bool TurnSchedule::IsIdle(const Member& member, int64_t now) const {
  return !member.says.running && !member.says.waiting &&
         now - member.active_ns >= settings_.grace_ns;
}

int64_t TurnSchedule::Decide(int64_t now) {
  return in_turns_ ? DecideInTurns(now) : DecideWithout(now);
}

int64_t TurnSchedule::DecideWithout(int64_t now) {
  const int active = CountActive(last_sample_ns_);
  last_sample_ns_ = now;
  if (now < no_turns_until_ns_) return std::min(kSleepySampleNs, no_turns_until_ns_ - now);
  if (active >= 2) {
    Enter(now);
    return kCloseLookNs;
  }
  return active == 0 ? kSleepySampleNs : kSampleNs;
}

void TurnSchedule::Enter(int64_t now) {
  in_turns_ = true;
  entered_ns_ = draining_since_ns_ = now;
  draining_all_ = true;
  holder_ = last_holder_ = 0;
  for (auto& [id, member] : members_) member.order = TurnOrder::kWait;
}

void TurnSchedule::Leave() {
  in_turns_ = draining_all_ = false;
  holder_ = last_holder_ = 0;
  draining_since_ns_ = 0;
  for (auto& [id, member] : members_) member.order = TurnOrder::kFree;
}

void TurnSchedule::GiveWayToLongWork(int64_t now) {
  pause_ns_ = now - entered_ns_ >= kGoodNs || no_turns_until_ns_ == 0
                  ? kFirstPauseNs
                  : std::min(2 * pause_ns_, kLongestPauseNs);
  no_turns_until_ns_ = now + pause_ns_;
  last_sample_ns_ = now;
  Leave();
}

int64_t TurnSchedule::DecideInTurns(int64_t now) {
  if (CountActive(now - kLeaveNs) < 2 && now - entered_ns_ >= kLeaveNs) {
    if (holder_ != 0) EndTurn(now);
    last_sample_ns_ = now;
    Leave();
    return kSampleNs;
  }
  if (draining_all_) return DrainAll(now);
  return holder_ != 0 ? Hold(now) : Hand(now);
}

// What they had given the device before there were turns.
int64_t TurnSchedule::DrainAll(int64_t now) {
  const bool all_ended = std::none_of(members_.begin(), members_.end(),
                                      [](const auto& one) { return one.second.says.running; });
  if (all_ended) {
    draining_all_ = false;
    return Hand(now);
  }
  // Without turns each of theirs has waited for a switch to each other.
  const int64_t limit = 2 * drain_ns() + static_cast<int64_t>(members_.size()) * kSoonNs;
  if (now - draining_since_ns_ < limit) return kCloseLookNs;
  GiveWayToLongWork(now);
  return kSampleNs;
}

int64_t TurnSchedule::Hold(int64_t now) {
  const uint64_t next = Next();
  if (next == 0) return kLookNs;
  Member& member = members_[holder_];
  const int64_t left = granted_ns_ + settings_.turn_ns - now;
  if (left <= 0 || IsIdle(member, now)) {
    EndTurn(now);
    return Hand(now);
  }
  Member& successor = members_[next];
  if (left <= kSoonNs && successor.order == TurnOrder::kWait) successor.order = TurnOrder::kSoon;
  const int64_t until_soon = left > kSoonNs ? left - kSoonNs : left;
  return std::clamp(until_soon, kCloseLookNs, kLookNs);
}

void TurnSchedule::EndTurn(int64_t now) {
  Member& member = members_[holder_];
  member.order = TurnOrder::kWait;
  member.used_ns += now - granted_ns_;
  member.balance->used_ns += (now - granted_ns_) * kDefaultShare / member.share;
  last_holder_ = holder_;
  holder_ = 0;
  draining_since_ns_ = now;
}

int64_t TurnSchedule::Hand(int64_t now) {
  const auto last = members_.find(last_holder_);
  if (last != members_.end() && last->second.says.running) {
    if (now - draining_since_ns_ < drain_ns()) return kCloseLookNs;
    GiveWayToLongWork(now);
    return kSampleNs;
  }
  const uint64_t next = Next();
  if (next == 0) return kLookNs;
  Grant(next, now);
  return kLookNs;
}

void TurnSchedule::Grant(uint64_t id, int64_t now) {
  for (auto& [other, member] : members_) member.order = TurnOrder::kWait;
  Member& member = members_[id];
  member.order = TurnOrder::kGo;
  ++member.had.turns;
  Balance& balance = *member.balance;
  virtual_ns_ = std::max(virtual_ns_, balance.used_ns);
  balance.virtual_ns = std::max(balance.virtual_ns, member.used_ns);
  // It need not begin at once.
  member.active_ns = now;
  holder_ = id;
  last_holder_ = 0;
  granted_ns_ = now;
}

}  // namespace sluice::broker
