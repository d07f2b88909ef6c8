// SPDX-License-Identifier: Apache-2.0
//
// Decides which worker of a device has the turn. A switch between two processes' contexts costs a
// GPU more than many a kernel (137 us on an H100). So light work of several goes faster in sum if
// each has the device for a while:
//
//   [no turns] -- two or more at work ---------------------------> [all wait] -- idle --+
//       ^                                                                              v
//       +-- at most one at work for kLeaveNs ----------------------------------- [turns]
//       +-- work that does not end at its turn's end: kernels of milliseconds keep the driver's own
//           time slices. Tried again after a while, and later each time.
//
// In turns, the waiting account that has had least time for its share is next, and of its workers
// the one that has had least: sixty sessions of one account have the share of one. A turn ends only
// if another waits: when it has lasted turn_ns, or its holder has had nothing to do for grace_ns.
// Then the holder is told to wait, and the next begins once the holder's submitted work has ended.
//
// A worker whose commands wait for somebody else's has nothing to do: it says so itself.
//
// *Windows* are turns by which accounts' shares hold, for work of any length (Settings::shares). An
// account is charged the time from the grant until all work submitted in the window has ended, so
// that a long kernel is paid for. The window goes on while its account still has had least. A
// worker has little work ahead of the device meanwhile (TurnOrder::kPaced). Long work does not end
// windows: the next waits for it, kLongestDrainNs at most. Work that lasts longer goes on beside
// the others, and is charged half of that time. An account's debt and its credit are bounded.
//
// An *interactive* account goes first: its work ends another's window at once, and its own lasts
// while it has work. That holds for a burst of device time, which fills up again at the account's
// part of the time (TurnPayer::interactive_percent). After that it is as any other.
//
// Owner: TurnGiver. Thread-compatible; no clock, no I/O: times are the caller's, in nanoseconds.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "broker/tenants/tenant.h"
#include "proto/turn_page.h"

namespace sluice::broker {

// The account that pays for a worker's turns.
struct TurnPayer {
  std::string account;  // "": its own.
  uint32_t share = kDefaultShare;
  uint32_t interactive_percent = 0;  // 0: it is not interactive.
};

class TurnSchedule {
 public:
  struct Settings {
    int64_t turn_ns = 2'000'000;
    int64_t grace_ns = 150'000;
    bool turns = true;  // For the sum's sake: a switch is dear.
    // For shares' sake: never, between accounts that differ in share or sessions, between any two.
    enum class Shares { kNever, kUneven, kAlways };
    Shares shares = Shares::kNever;
    // The device is the processors on which this runs: no looking without sleep.
    bool is_cpu = false;
  };
  // One worker's words, read once.
  struct Says {
    uint32_t submitted = 0;
    bool running = false;
    bool waiting = false;
  };
  enum class State { kNoTurns, kTurns, kLongWork, kWindows };

  // How often to look: for a second one at work, the same when all sleep, and in turns.
  static constexpr int64_t kSampleNs = 10'000'000;
  static constexpr int64_t kSleepySampleNs = 50'000'000;
  static constexpr int64_t kLookNs = 100'000;
  static constexpr int64_t kCloseLookNs = 20'000;
  // Before its turn, who is next is told to look without sleep.
  static constexpr int64_t kSoonNs = 200'000;
  static constexpr int64_t kLeaveNs = 20'000'000;
  // Pauses without turns, after work that did not end with its turn.
  static constexpr int64_t kFirstPauseNs = 200'000'000;
  static constexpr int64_t kLongestPauseNs = 5'000'000'000;
  static constexpr int64_t kGoodNs = 1'000'000'000;  // Turns that last so long end the doubling.
  // Longest waits of windows: for work from before them, and for work submitted in one.
  static constexpr int64_t kFirstDrainNs = 20'000'000;
  static constexpr int64_t kLongestDrainNs = 1'000'000'000;
  static constexpr int64_t kNextDrainNs = 100'000'000;   // Of one that has lasted longer before.
  static constexpr int64_t kMostDebtNs = 1'000'000'000;  // Of an account's own time.
  // Of an account that was not idle: as much as a kernel of 20 ms costs one that has a tenth of the
  // usual share.
  static constexpr int64_t kMostCreditNs = 200'000'000;
  static constexpr int64_t kLatestBeginNs = 1'000'000;
  // An interactive account may have so much at once before the others.
  static constexpr int64_t kBurstNs = 20'000'000;
  // Longer it does not wait for what another has submitted: a GPU's driver puts it in between.
  static constexpr int64_t kBurstDrainNs = 1'000'000;
  // It is at work for so long after its last command: its next finds windows.
  static constexpr int64_t kInteractiveNs = 1'000'000'000;

  explicit TurnSchedule(const Settings& settings) : settings_(settings) {}
  void Configure(const Settings& settings) { settings_ = settings; }
  const Settings& settings() const { return settings_; }

  void Remove(uint64_t id);
  // Adds it if it is new.
  void Note(uint64_t id, const Says& says, int64_t now, const TurnPayer& payer = {});
  // After all have been noted. Returns how long to wait before the next look.
  int64_t Decide(int64_t now);

  wire::TurnOrder OrderOf(uint64_t id) const;
  State state(int64_t now) const;
  size_t size() const { return members_.size(); }
  // An interactive account is at work: the others are to have little work ahead of the device.
  bool HasInteractive(int64_t now) const;

  struct Usage {
    uint64_t turns = 0;
    int64_t waited_ns = 0;  // For them.
    int64_t device_ns = 0;  // Charged to it.
  };
  Usage UsageOf(uint64_t id) const;

 private:
  // Times of an account are those of its share: with twice the share, half as long.
  struct Balance {
    int64_t used_ns = 0;
    int64_t virtual_ns = 0;  // As virtual_ns_, of its members.
    int64_t active_ns = 0;   // When one of them last was seen to do something.
    size_t members = 0;
    uint32_t interactive_percent = 0;
    int64_t burst_ns = 0;  // The part of its burst that it has had by then.
    int64_t burst_at_ns = 0;
    bool burst_over = false;  // Until half of it is there again.
  };
  struct Member {
    std::string account;
    Balance* balance = nullptr;  // In balances_.
    uint32_t share = kDefaultShare;
    Says says;
    int64_t active_ns = 0;  // When it last was seen to do something.
    int64_t used_ns = 0;    // Of the device's time.
    int64_t waits_since_ns = 0;
    int64_t grace_ns = 0;  // Of windows: how long it may have nothing to do; at least the setting.
    int64_t lost_ns = 0;   // When it lost its last, for that; 0: it has come back.
    // Its window is over, and what it has submitted in it is not: since then, of what was charged.
    bool lingers = false;
    int64_t lingers_since_ns = 0;
    Usage usage;
    wire::TurnOrder order = wire::TurnOrder::kFree;
  };

  void NoteReturn(Member* member, int64_t now) const;
  int64_t GraceOf(const Member& member) const;
  void Join(uint64_t id, const TurnPayer& payer, Member* member);
  int64_t DecideWithout(int64_t now);
  int64_t DecideInTurns(int64_t now);
  int64_t DrainAll(int64_t now);
  int64_t Hold(int64_t now);
  int64_t Hand(int64_t now);
  static bool IsActive(const Member& member, int64_t since);
  static int64_t BurstOf(const Balance& balance, int64_t now);
  // `had_ns`: since its grant, which it has not been charged for yet.
  static bool GoesFirst(const Member& member, int64_t now, int64_t had_ns = 0);
  int CountActive(int64_t since) const;
  bool WantsWindows(int64_t since) const;
  bool LeavesTurns(int64_t now);
  uint64_t Next(int64_t now) const;  // 0: nobody waits.
  bool IsIdle(const Member& member, int64_t now) const;
  bool IsAheadOf(const Member& next, int64_t now) const;
  void Enter(int64_t now, bool windows);
  void Leave();
  void GiveWayToLongWork(int64_t now);
  void Grant(uint64_t id, int64_t now);
  void EndTurn(int64_t now);
  bool AwaitsLast(Member* last, int64_t now);
  void Charge(Member* member, int64_t ns, int64_t now);
  void Linger(Member* member, int64_t now);
  int64_t look_ns() const { return settings_.is_cpu ? 2 * kLookNs : kLookNs; }
  int64_t close_look_ns() const { return settings_.is_cpu ? kLookNs / 2 : kCloseLookNs; }
  int64_t drain_look_ns(int64_t now) const;
  int64_t drain_ns() const {
    return settings_.turn_ns / 2 > kLeastDrainNs ? settings_.turn_ns / 2 : kLeastDrainNs;
  }
  static constexpr int64_t kLeastDrainNs = 500'000;

  Settings settings_;
  std::map<uint64_t, Member> members_;
  std::map<std::string, Balance> balances_;  // By account.
  bool in_turns_ = false;
  uint64_t holder_ = 0;       // 0: nobody,
  uint64_t last_holder_ = 0;  // or it has been told to wait, since then, and may have work there.
  int64_t granted_ns_ = 0;
  int64_t begins_ns_ = 0;  // From when on the holder is charged,
  bool begun_ = false;     // and it has submitted something since.
  uint32_t submitted_before_ = 0;
  int64_t draining_since_ns_ = 0;  // 0: it is not awaited.
  int64_t drain_limit_ns_ = kLongestDrainNs;
  bool draining_all_ = false;
  bool windows_ = false;    // The turns are windows.
  int64_t virtual_ns_ = 0;  // SFQ's virtual time: what the accounts that have had least have had.
  int64_t entered_ns_ = 0;
  int64_t no_turns_until_ns_ = 0;
  int64_t pause_ns_ = kFirstPauseNs;
  int64_t last_sample_ns_ = 0;
};

}  // namespace sluice::broker
