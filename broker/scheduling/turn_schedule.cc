// SPDX-License-Identifier: Apache-2.0
#include "broker/scheduling/turn_schedule.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

namespace sluice::broker {

using wire::TurnOrder;
namespace {

// Longest pause between looks at work that is waited for, however long it lasts.
constexpr int64_t kLongestLookNs = 500'000;

}  // namespace

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
  member->balance->interactive_percent = payer.interactive_percent;
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
  Balance& balance = *member.balance;
  const bool member_was_idle = now - member.active_ns > kLeaveNs;
  const bool was_idle = now - balance.active_ns > kLeaveNs;
  if (says.submitted != member.says.submitted || says.running || says.waiting)
    member.active_ns = balance.active_ns = now;
  if (member.lingers) {
    // In its own window it is charged for the window.
    if (holder_ != id) Charge(&member, (now - member.lingers_since_ns) / 2, now);
    member.lingers = says.running;
    member.lingers_since_ns = now;
  }
  if (says.waiting && !member.says.waiting) {
    member.waits_since_ns = now;
    NoteReturn(&member, now);
    // One that was idle has saved up no more than a turn. One that only paused between two commands
    // keeps what it is behind, up to kMostCreditNs.
    const int64_t most = was_idle ? settings_.turn_ns : kMostCreditNs;
    balance.used_ns = std::max(balance.used_ns, virtual_ns_ - most);
    const int64_t most_of_member = member_was_idle ? settings_.turn_ns : kMostCreditNs;
    member.used_ns = std::max(member.used_ns, balance.virtual_ns - most_of_member);
  }
  if (!says.waiting && member.says.waiting) member.usage.waited_ns += now - member.waits_since_ns;
  member.says = says;
}

// A worker that lost its window just before it had work again gets a longer grace the next time.
// Its share is no use to it if another's kernel comes between any two of its own. It is charged for
// that.
void TurnSchedule::NoteReturn(Member* member, int64_t now) const {
  if (member->lost_ns == 0) return;
  const bool at_once = now - member->lost_ns < settings_.turn_ns;
  const int64_t grace_ns = at_once ? 2 * GraceOf(*member) : GraceOf(*member) / 2;
  member->grace_ns = std::min(grace_ns, settings_.turn_ns);
  member->lost_ns = 0;
}

int64_t TurnSchedule::GraceOf(const Member& member) const {
  return windows_ ? std::max(member.grace_ns, settings_.grace_ns) : settings_.grace_ns;
}

TurnOrder TurnSchedule::OrderOf(uint64_t id) const {
  const auto found = members_.find(id);
  return found == members_.end() ? TurnOrder::kFree : found->second.order;
}

TurnSchedule::State TurnSchedule::state(int64_t now) const {
  if (in_turns_) return windows_ ? State::kWindows : State::kTurns;
  return now < no_turns_until_ns_ ? State::kLongWork : State::kNoTurns;
}

TurnSchedule::Usage TurnSchedule::UsageOf(uint64_t id) const {
  const auto found = members_.find(id);
  return found == members_.end() ? Usage{} : found->second.usage;
}

bool TurnSchedule::IsActive(const Member& member, int64_t since) {
  return member.active_ns >
         (member.balance->interactive_percent != 0 ? since - kInteractiveNs : since);
}

int64_t TurnSchedule::BurstOf(const Balance& balance, int64_t now) {
  const int64_t refilled = (now - balance.burst_at_ns) * balance.interactive_percent / 100;
  return std::max<int64_t>(balance.burst_ns - refilled, 0);
}

bool TurnSchedule::GoesFirst(const Member& member, int64_t now, int64_t had_ns) {
  const Balance& balance = *member.balance;
  if (balance.interactive_percent == 0) return false;
  return BurstOf(balance, now) + had_ns < (balance.burst_over ? kBurstNs / 2 : kBurstNs);
}

bool TurnSchedule::HasInteractive(int64_t now) const {
  return std::any_of(members_.begin(), members_.end(), [now](const auto& one) {
    return one.second.balance->interactive_percent != 0 && IsActive(one.second, now);
  });
}

int TurnSchedule::CountActive(int64_t since) const {
  return static_cast<int>(std::count_if(members_.begin(), members_.end(), [since](const auto& one) {
    return IsActive(one.second, since);
  }));
}

bool TurnSchedule::WantsWindows(int64_t since) const {
  using Shares = Settings::Shares;
  if (settings_.shares == Shares::kNever || balances_.size() < 2) return false;
  struct AtWork {
    const Balance* account;
    uint32_t share;
    int sessions;
  };
  std::vector<AtWork> all;
  for (const auto& [id, member] : members_) {
    if (!IsActive(member, since)) continue;
    const auto found = std::find_if(all.begin(), all.end(), [&member = member](const AtWork& one) {
      return one.account == member.balance;
    });
    if (found == all.end()) {
      all.push_back({member.balance, member.share, 1});
    } else {
      ++found->sessions;
    }
  }
  if (all.size() < 2) return false;
  return settings_.shares == Shares::kAlways ||
         std::any_of(all.begin(), all.end(), [&all](const AtWork& one) {
           return one.account->interactive_percent != 0 || one.share != all[0].share ||
                  one.sessions != all[0].sessions;
         });
}

uint64_t TurnSchedule::Next(int64_t now) const {
  uint64_t next = 0;
  std::tuple<bool, int64_t, int64_t> least;
  for (const auto& [id, member] : members_) {
    if (!member.says.waiting || id == holder_) continue;
    const std::tuple used = {!GoesFirst(member, now), member.balance->used_ns, member.used_ns};
    if (next != 0 && used >= least) continue;
    next = id;
    least = used;
  }
  return next;
}

bool TurnSchedule::IsIdle(const Member& member, int64_t now) const {
  return !member.says.running && !member.says.waiting && now - member.active_ns >= GraceOf(member);
}

// True if it would have had more for its share, were its window to end now.
bool TurnSchedule::IsAheadOf(const Member& next, int64_t now) const {
  const Member& holder = members_.at(holder_);
  if (holder.balance == next.balance) return true;
  const int64_t used = holder.balance->used_ns + (now - begins_ns_) * kDefaultShare / holder.share;
  return used > next.balance->used_ns;
}

void TurnSchedule::Charge(Member* member, int64_t ns, int64_t now) {
  Balance& balance = *member->balance;
  const int64_t burst_before_ns = BurstOf(balance, now);
  balance.burst_ns = burst_before_ns + ns;
  balance.burst_at_ns = now;
  balance.burst_over =
      balance.burst_ns >= kBurstNs || (balance.burst_over && burst_before_ns >= kBurstNs / 2);
  member->used_ns += ns;
  member->usage.device_ns += ns;
  const int64_t most = virtual_ns_ + kMostDebtNs * kDefaultShare / member->share;
  balance.used_ns = std::min(balance.used_ns + ns * kDefaultShare / member->share,
                             std::max(balance.used_ns, most));
}

void TurnSchedule::Linger(Member* member, int64_t now) {
  member->lingers = true;
  member->lingers_since_ns = now;
}

int64_t TurnSchedule::Decide(int64_t now) {
  return in_turns_ ? DecideInTurns(now) : DecideWithout(now);
}

int64_t TurnSchedule::DecideWithout(int64_t now) {
  const int active = CountActive(last_sample_ns_);
  const bool windows = active >= 2 && WantsWindows(last_sample_ns_);
  last_sample_ns_ = now;
  if (!windows && now < no_turns_until_ns_)
    return std::min(kSleepySampleNs, no_turns_until_ns_ - now);
  if (windows || (active >= 2 && settings_.turns)) {
    Enter(now, windows);
    return close_look_ns();
  }
  return active == 0 ? kSleepySampleNs : kSampleNs;
}

void TurnSchedule::Enter(int64_t now, bool windows) {
  in_turns_ = true;
  windows_ = windows;
  entered_ns_ = draining_since_ns_ = now;
  draining_all_ = true;
  holder_ = last_holder_ = 0;
  for (auto& [id, member] : members_) member.order = TurnOrder::kWait;
}

// Clears debts and credits: while nobody else wants the device, anybody may have it.
void TurnSchedule::Leave() {
  in_turns_ = draining_all_ = windows_ = false;
  holder_ = last_holder_ = 0;
  draining_since_ns_ = 0;
  for (const auto& [name, balance] : balances_)
    virtual_ns_ = std::max(virtual_ns_, balance.used_ns);
  for (auto& [name, balance] : balances_) balance.used_ns = virtual_ns_;
  for (auto& [id, member] : members_) {
    member.order = TurnOrder::kFree;
    member.lingers = false;
  }
}

void TurnSchedule::GiveWayToLongWork(int64_t now) {
  pause_ns_ = now - entered_ns_ >= kGoodNs || no_turns_until_ns_ == 0
                  ? kFirstPauseNs
                  : std::min(2 * pause_ns_, kLongestPauseNs);
  no_turns_until_ns_ = now + pause_ns_;
  last_sample_ns_ = now;
  Leave();
}

bool TurnSchedule::LeavesTurns(int64_t now) {
  if (now - entered_ns_ < kLeaveNs) return false;
  const int active = CountActive(now - kLeaveNs);
  windows_ = active >= 2 && WantsWindows(now - kLeaveNs);
  return active < 2 || !(windows_ || settings_.turns);
}

int64_t TurnSchedule::DecideInTurns(int64_t now) {
  if (LeavesTurns(now)) {
    if (holder_ != 0) EndTurn(now);
    last_sample_ns_ = now;
    Leave();
    return kSampleNs;
  }
  if (draining_all_) return DrainAll(now);
  return holder_ != 0 ? Hold(now) : Hand(now);
}

int64_t TurnSchedule::drain_look_ns(int64_t now) const {
  if (!windows_) return close_look_ns();
  // The longer the work lasts, the rarer the looks: at most this part of its time is lost. On
  // processors a look takes their time.
  const int64_t part = settings_.is_cpu ? 8 : 32;
  return std::clamp((now - draining_since_ns_) / part, close_look_ns(), kLongestLookNs);
}

// Waits for the work that was submitted before there were turns.
int64_t TurnSchedule::DrainAll(int64_t now) {
  const bool all_ended = std::none_of(members_.begin(), members_.end(),
                                      [](const auto& one) { return one.second.says.running; });
  // Without turns, each one's work has waited for a switch to every other.
  const int64_t limit =
      windows_ ? kFirstDrainNs : 2 * drain_ns() + static_cast<int64_t>(members_.size()) * kSoonNs;
  if (!all_ended && now - draining_since_ns_ < limit) return drain_look_ns(now);
  if (!all_ended && !windows_) {
    GiveWayToLongWork(now);
    return kSampleNs;
  }
  for (auto& [id, member] : members_)
    if (member.says.running) Linger(&member, now);
  draining_all_ = false;
  return Hand(now);
}

int64_t TurnSchedule::Hold(int64_t now) {
  Member& member = members_[holder_];
  // It is not charged for its worker's waking up.
  begun_ = begun_ || member.says.running || member.says.submitted != submitted_before_ ||
           now - granted_ns_ >= kLatestBeginNs;
  if (!begun_) begins_ns_ = now;
  const uint64_t next = Next(now);
  if (next == 0) return look_ns();
  Member& successor = members_[next];
  const int64_t left = granted_ns_ + settings_.turn_ns - now;
  const bool idle = IsIdle(member, now);
  if (idle) member.lost_ns = now;
  const bool first = GoesFirst(member, now, now - begins_ns_);
  const bool successor_first = GoesFirst(successor, now);
  const bool over =
      left <= 0 && (!windows_ || (first == successor_first && IsAheadOf(successor, now)));
  if (idle || over || (windows_ && successor_first && !first)) {
    EndTurn(now);
    return Hand(now);
  }
  if (left <= 0) return look_ns();
  const bool spins = !settings_.is_cpu;
  if (spins && left <= kSoonNs && successor.order == TurnOrder::kWait)
    successor.order = TurnOrder::kSoon;
  const int64_t until_soon = left > kSoonNs ? left - kSoonNs : left;
  return std::clamp(until_soon, close_look_ns(), look_ns());
}

void TurnSchedule::EndTurn(int64_t now) {
  Member& member = members_[holder_];
  member.order = TurnOrder::kWait;
  Charge(&member, now - begins_ns_, now);
  drain_limit_ns_ = member.lingers ? kNextDrainNs : kLongestDrainNs;
  member.lingers = false;
  last_holder_ = holder_;
  holder_ = 0;
  draining_since_ns_ = now;
}

// In windows: true while the last holder's submitted work is waited for.
bool TurnSchedule::AwaitsLast(Member* last, int64_t now) {
  const uint64_t next = Next(now);
  const bool first = next != 0 && GoesFirst(members_.at(next), now) && !GoesFirst(*last, now);
  const int64_t limit = first ? kBurstDrainNs : drain_limit_ns_;
  if (last->says.running && now - draining_since_ns_ < limit) return true;
  Charge(last, now - draining_since_ns_, now);
  if (last->says.running) Linger(last, now);
  last_holder_ = 0;
  return false;
}

int64_t TurnSchedule::Hand(int64_t now) {
  const auto last = members_.find(last_holder_);
  if (last != members_.end() && windows_) {
    if (AwaitsLast(&last->second, now)) return drain_look_ns(now);
  } else if (last != members_.end() && last->second.says.running) {
    if (now - draining_since_ns_ < drain_ns()) return close_look_ns();
    GiveWayToLongWork(now);
    return kSampleNs;
  }
  const uint64_t next = Next(now);
  if (next == 0) return look_ns();
  Grant(next, now);
  return look_ns();
}

void TurnSchedule::Grant(uint64_t id, int64_t now) {
  for (auto& [other, member] : members_) member.order = TurnOrder::kWait;
  Member& member = members_[id];
  member.order = windows_ ? TurnOrder::kPaced : TurnOrder::kGo;
  ++member.usage.turns;
  Balance& balance = *member.balance;
  // One that goes first need not have had least.
  if (!GoesFirst(member, now)) virtual_ns_ = std::max(virtual_ns_, balance.used_ns);
  balance.virtual_ns = std::max(balance.virtual_ns, member.used_ns);
  // It need not begin at once.
  member.active_ns = now;
  holder_ = id;
  last_holder_ = 0;
  granted_ns_ = begins_ns_ = now;
  begun_ = false;
  submitted_before_ = member.says.submitted;
}

}  // namespace sluice::broker
