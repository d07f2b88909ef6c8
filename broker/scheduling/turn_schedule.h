// SPDX-License-Identifier: Apache-2.0
//
// Who of the workers of one device has the turn. A switch between two processes' contexts costs a
// GPU more than many a kernel (137 us on an H100), so light work of several goes faster in sum if
// each has the device for a while:
//
//   [no turns] -- two or more at work ---------------------------> [all wait] -- idle --+
//       ^                                                                              v
//       +-- at most one at work for kLeaveNs ----------------------------------- [turns]
//       +-- work that does not end at its turn's end: kernels of milliseconds keep the driver's own
//           time slices. Tried again after a while, and later each time.
//
// In turns, the account that waits and has had least time for its share is next, and of its workers
// the one that has had least: sixty sessions of one account have the share of one. A turn ends only
// if another waits: when it has lasted turn_ns, or its holder has had nothing to do for grace_ns.
// At its end the holder is told to wait; the next goes when what the holder has given the device
// has ended.
//
// A worker whose commands wait for somebody else's has nothing to do: it says so itself.
//
// Owner: TurnGiver. Thread-compatible; no clock, no I/O: times are the caller's, in nanoseconds.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "broker/tenants/tenant.h"
#include "proto/turn_page.h"

namespace sluice::broker {

// Whose time a worker's turns are.
struct TurnPayer {
  std::string account;  // "": its own.
  uint32_t share = kDefaultShare;
};

class TurnSchedule {
 public:
  struct Settings {
    int64_t turn_ns = 2'000'000;
    int64_t grace_ns = 150'000;
  };
  // What one worker says, read once.
  struct Says {
    uint32_t submitted = 0;
    bool running = false;
    bool waiting = false;
  };
  enum class State { kNoTurns, kTurns, kLongWork };

  // How often to look: for a second one at work, the same when all sleep, and in turns.
  static constexpr int64_t kSampleNs = 10'000'000;
  static constexpr int64_t kSleepySampleNs = 50'000'000;
  static constexpr int64_t kLookNs = 100'000;
  static constexpr int64_t kCloseLookNs = 20'000;
  // Before its turn, who is next is told to look without sleep.
  static constexpr int64_t kSoonNs = 200'000;
  static constexpr int64_t kLeaveNs = 20'000'000;
  // After work that did not end with its turn.
  static constexpr int64_t kFirstPauseNs = 200'000'000;
  static constexpr int64_t kLongestPauseNs = 5'000'000'000;
  static constexpr int64_t kGoodNs = 1'000'000'000;  // Turns that last so long end the doubling.

  explicit TurnSchedule(const Settings& settings) : settings_(settings) {}
  void Configure(const Settings& settings) { settings_ = settings; }

  void Remove(uint64_t id);
  // Adds it if it is new.
  void Note(uint64_t id, const Says& says, int64_t now, const TurnPayer& payer = {});
  // After all have been noted. Returns how long to wait before the next look.
  int64_t Decide(int64_t now);

  wire::TurnOrder OrderOf(uint64_t id) const;
  State state(int64_t now) const;
  size_t size() const { return members_.size(); }

  struct Had {
    uint64_t turns = 0;
    int64_t waited_ns = 0;  // For them.
  };
  Had HadBy(uint64_t id) const;

 private:
  // Times of an account are those of its share: with twice the share, half as long.
  struct Balance {
    int64_t used_ns = 0;
    int64_t virtual_ns = 0;  // As virtual_ns_, of its members.
    size_t members = 0;
  };
  struct Member {
    std::string account;
    Balance* balance = nullptr;  // In balances_.
    uint32_t share = kDefaultShare;
    Says says;
    int64_t active_ns = 0;  // When it last was seen to do something.
    int64_t used_ns = 0;    // Of the device's time.
    int64_t waits_since_ns = 0;
    Had had;
    wire::TurnOrder order = wire::TurnOrder::kFree;
  };

  void Join(uint64_t id, const TurnPayer& payer, Member* member);
  int64_t DecideWithout(int64_t now);
  int64_t DecideInTurns(int64_t now);
  int64_t DrainAll(int64_t now);
  int64_t Hold(int64_t now);
  int64_t Hand(int64_t now);
  int CountActive(int64_t since) const;
  uint64_t Next() const;  // 0: nobody waits.
  bool IsIdle(const Member& member, int64_t now) const;
  void Enter(int64_t now);
  void Leave();
  void GiveWayToLongWork(int64_t now);
  void Grant(uint64_t id, int64_t now);
  void EndTurn(int64_t now);
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
  int64_t draining_since_ns_ = 0;  // 0: it is not awaited.
  bool draining_all_ = false;
  int64_t virtual_ns_ = 0;  // What accounts have had that have had least, as SFQ's virtual time.
  int64_t entered_ns_ = 0;
  int64_t no_turns_until_ns_ = 0;
  int64_t pause_ns_ = kFirstPauseNs;
  int64_t last_sample_ns_ = 0;
};

}  // namespace sluice::broker
