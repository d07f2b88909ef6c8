// SPDX-License-Identifier: Apache-2.0
//
// Decides who may have a connection: counts connections, per address and in all, from before their
// first byte. A newcomer is one that has not yet said who it is; the others are members. Newcomers
// have room of their own, so that they keep no member out. Among newcomers the address with the
// most of them gives way to the others. So a stranger with few addresses cannot keep a port busy by
// saying nothing.
//
//   Enter -> newcomer -> Settle -> member -> Leave
//                     -> evicted: its connection is shut down, and its owner then leaves
//
// Owner: the front. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "daemon/gateway/front/connection_limits.h"

namespace sluice::gateway {

// "192.0.2.7" stays; of "[2001:db8::1]" the first 64 bits count, since who has one address of such
// a network has them all.
std::string AddressGroup(const std::string& address);

class ConnectionLimiter {
 public:
  explicit ConnectionLimiter(const ConnectionLimits& limits) : limits_(limits) {}

  // One connection's place, which it leaves by its end.
  class Place {
   public:
    ~Place() { End(); }
    // From now on `evict` is not called. Before the connection's descriptor is closed.
    void End() { limiter_->Leave(this); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    friend class ConnectionLimiter;
    enum class State { kNewcomer, kMember, kEvicted, kLeft };
    Place(ConnectionLimiter* limiter, std::string group, uint64_t number,
          std::function<void()> evict)
        : limiter_(limiter), group_(std::move(group)), number_(number), evict_(std::move(evict)) {}

    ConnectionLimiter* const limiter_;
    const std::string group_;
    const uint64_t number_;  // Later ones have higher ones.
    const std::function<void()> evict_;
    // Guarded by the limiter's lock.
    State state_ = State::kNewcomer;
    std::list<Place*>::iterator at_;  // Of a newcomer.
  };

  // Null: the address has as many as it may. Otherwise there is room, if need be that of another
  // newcomer, whose `evict` is called: it must be short, and call nothing here.
  std::unique_ptr<Place> Enter(const std::string& address, std::function<void()> evict);
  // It has said who it is. False: it has gone, or there are as many as there may be.
  bool Settle(Place* place);
  // For a system that has no room for another connection: ends the newcomer that would be next.
  void EvictOne();

  int newcomers() const;
  int members() const;

 private:
  struct Group {
    std::list<Place*> newcomers;  // The oldest first.
    int members = 0;
    int evicted = 0;  // That have not left yet.
    int count() const { return static_cast<int>(newcomers.size()) + members + evicted; }
  };

  void Leave(Place* place);
  void EvictOneLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ForgetNewcomerLocked(Group* group, Place* place) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const ConnectionLimits limits_;
  mutable absl::Mutex mu_;
  std::map<std::string, Group> groups_ ABSL_GUARDED_BY(mu_);
  int newcomers_ ABSL_GUARDED_BY(mu_) = 0;
  int members_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t next_number_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace sluice::gateway
