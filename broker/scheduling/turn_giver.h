// SPDX-License-Identifier: Apache-2.0
//
// Gives the workers of each device their turns (turn_schedule.h), by the pages that it shares with
// each (proto/turn_page.h). A thread of its own reads the workers' words: every 10 to 50 ms while
// no two are at work, every 100 us in turns, and without sleep when a turn ends. With fewer than
// two workers it sleeps.
//
// If that thread stops (the broker is killed, or stopped), workers miss its sign of life and go on
// without turns. Workers of a broker that is gone stay so, as the next one does not know them.
//
// Owner: Workers. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "broker/config/config.h"
#include "broker/os/scoped_handle.h"
#include "broker/os/shared_memory.h"
#include "broker/scheduling/turn_schedule.h"
#include "proto/turn_page.h"

namespace sluice::broker {

class TurnGiver {
 public:
  TurnGiver() = default;
  ~TurnGiver();
  TurnGiver(const TurnGiver&) = delete;
  TurnGiver& operator=(const TurnGiver&) = delete;

  // For workers added from now on; lengths and shares hold for all. `divides_processors`: the
  // kernel divides the processors between accounts by their shares.
  void Configure(const TurnsConfig& config, bool divides_processors) ABSL_LOCKS_EXCLUDED(mutex_);

  // A worker's ends of its pages, not valid where it gets no turns. Only the worker keeps them.
  struct Pages {
    os::UniqueFd orders;
    os::UniqueFd words;
  };
  Pages Add(uint64_t id, const Account& account) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);

  // For operators.
  struct Report {
    std::string state;  // "on", or "off: " and why.
    uint64_t turns = 0;
    uint64_t waited_us = 0;
    std::string shares;      // As state.
    uint64_t device_us = 0;  // Charged to it in turns.
  };
  Report ReportOf(uint64_t id) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Worker {
    os::SharedMapping orders;
    os::SharedMapping words;
    TurnPayer payer;
    uint64_t device = 0;

    wire::TurnOrders& order() const { return *reinterpret_cast<wire::TurnOrders*>(orders.data()); }
    const wire::TurnWords& says() const {
      return *reinterpret_cast<const wire::TurnWords*>(words.data());
    }
  };

  absl::StatusOr<Pages> MakePages(Worker* worker);
  TurnSchedule::Settings SettingsFor(const wire::TurnWords& words) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  std::string DescribeTurns(const Worker& worker, const TurnSchedule* schedule) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  std::string DescribeShares(const TurnSchedule* schedule) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void StartThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run();
  // Returns how long to wait before the next look.
  int64_t Look() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteAll(int64_t now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LeaveDevice(uint64_t id, Worker* worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayStop() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stop_; }
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stop_ || workers_.size() >= 2 || any_orders_;
  }

  mutable absl::Mutex mutex_;
  TurnsConfig config_ ABSL_GUARDED_BY(mutex_);
  bool divides_processors_ ABSL_GUARDED_BY(mutex_) = false;
  std::string unavailable_ ABSL_GUARDED_BY(mutex_);  // Why the system has no such pages.
  std::map<uint64_t, Worker> workers_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, TurnSchedule> schedules_ ABSL_GUARDED_BY(mutex_);  // By device.
  bool any_orders_ ABSL_GUARDED_BY(mutex_) = false;                     // Not all are free.
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Notification ended_;
};

}  // namespace sluice::broker
