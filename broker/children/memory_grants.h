// SPDX-License-Identifier: Apache-2.0
//
// Device memory that an account's sessions may have together. A worker has no more than the broker
// has granted it, asks for more before it runs out, and gets more than it needs at the moment, so
// that few creations wait. Where an account has no more to grant, its other workers are asked to
// give back what they do not use. A worker that does not answer keeps it, from its own account.
//
//   worker A          broker            worker B (same account)
//     | -- WantMemory --> |                     |
//     |                   | -- SpareMemory ---> |    only if it does not fit, in rounds
//     |                   | <- MemoryReturned - |
//     | <- GrantMemory -- |                     |    0 bytes: the account has no more
//
// Owner: Workers. Loop thread only. Sessions are those that were opened with a limit.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace sluice::broker {

class MemoryGrants {
 public:
  struct Sender {
    std::function<void(uint64_t session, uint64_t serial, uint64_t bytes)> grant;
    std::function<void(uint64_t session)> ask_back;
  };
  explicit MemoryGrants(Sender sender) : sender_(std::move(sender)) {}

  // The limit holds for the account from now on: what it has beyond it stays granted.
  void Add(uint64_t session, const std::string& account, uint64_t limit);
  // Its worker has ended: its grants are free.
  void Remove(uint64_t session, int64_t now_ms);

  // A worker's messages. False: it breaks the protocol. `ahead`: it needs nothing now, and takes
  // what is free.
  bool Want(uint64_t session, uint64_t serial, uint64_t bytes, bool ahead, int64_t now_ms);
  bool Return(uint64_t session, uint64_t bytes, int64_t now_ms);

  // When AdvanceTo has something to do.
  std::optional<int64_t> NextDueMs() const;
  void AdvanceTo(int64_t now_ms);

  uint64_t GrantedTo(uint64_t session) const;
  uint64_t GrantedIn(const std::string& account) const;

  // Of workers that are asked to give back, all of an account at once. Those that want memory
  // wait for the next round: a tenant with many sessions at its limit must not keep the broker busy.
  static constexpr int64_t kBetweenRoundsMs = 20;
  static constexpr int64_t kRoundMs = 250;  // Then those that have not answered are left out.

 private:
  struct Waiting {
    uint64_t session = 0;
    uint64_t serial = 0;
    uint64_t bytes = 0;
    uint64_t round = 0;  // The first round begun after this was asked: its end decides.
  };
  struct Account {
    uint64_t limit = 0;
    uint64_t granted = 0;
    std::set<uint64_t> sessions;
    std::deque<Waiting> waiting;
    uint64_t rounds = 0;       // Begun.
    uint64_t unanswered = 0;   // Of the round that runs.
    int64_t round_end_ms = 0;  // 0: none runs.
    int64_t next_round_ms = 0;

    uint64_t free() const { return limit > granted ? limit - granted : 0; }
  };
  struct Session {
    std::string account;
    uint64_t granted = 0;
    bool asked_back = false;
    bool waits = false;
  };

  void Grant(Account* account, uint64_t session, uint64_t serial, uint64_t bytes);
  void Answered(Account* account, Session* session, int64_t now_ms);
  void StartRound(Account* account, int64_t now_ms);
  void EndRound(Account* account, int64_t now_ms);
  // Grants what fits to those that wait, the first first; refuses those whose round has ended.
  void Serve(Account* account);

  const Sender sender_;
  std::map<std::string, Account> accounts_;
  std::map<uint64_t, Session> sessions_;
};

}  // namespace sluice::broker
