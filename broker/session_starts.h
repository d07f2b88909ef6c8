// SPDX-License-Identifier: Apache-2.0
//
// Bounds how many workers start at once, of one account and of all. A start lasts until the worker
// has loaded its drivers and serves its client, which takes a processor a good part of a second.
// Further requests of an account wait in line, and the accounts take turns. So an account that
// opens and closes many sessions does not delay another's first one.
//
// Owner: SessionOpener. Loop thread only.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>

namespace sluice::broker {

class SessionStarts {
 public:
  // Returns the session that it has started; 0: none.
  using Start = std::function<uint64_t()>;

  SessionStarts(uint64_t most_of_account, uint64_t most_in_all)
      : most_of_account_(most_of_account), most_in_all_(most_in_all) {}

  // Calls `start` now, or when its turn comes, unless Forget has been called for its owner. False:
  // kMostWaiting of the account wait already.
  bool Ask(const std::string& account, uint64_t owner, Start start);
  void Forget(uint64_t owner);
  // The session's worker serves its client, or has ended, or takes too long.
  void Done(uint64_t session);

  size_t waiting() const { return waiting_count_; }

  static constexpr size_t kMostWaiting = 1024;  // Of one account.

 private:
  struct Waiting {
    uint64_t owner = 0;
    Start start;
  };

  bool HasRoom(const std::string& account) const;
  void Run(const std::string& account, const Start& start);
  void StartWhileRoom();

  const uint64_t most_of_account_;
  const uint64_t most_in_all_;
  std::map<uint64_t, std::string> starting_;            // Accounts of sessions.
  std::map<std::string, uint64_t> starting_of_;         // No entry is 0.
  std::map<std::string, std::deque<Waiting>> waiting_;  // No entry is empty.
  size_t waiting_count_ = 0;
  std::string last_;  // The account that had the last turn.
};

}  // namespace sluice::broker
