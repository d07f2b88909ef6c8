// SPDX-License-Identifier: Apache-2.0
#include "broker/scheduling/turn_giver.h"

#include <algorithm>
#include <climits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "broker/base/log.h"
#include "broker/os/doorbell.h"
#include "broker/os/threads.h"
#include "proto/spin.h"
#include "proto/status_macros.h"

namespace sluice::broker {
namespace {

// Below it a sleep on the mutex would end late.
constexpr int64_t kShortSleepNs = 1'000'000;

TurnSchedule::Settings SettingsOf(const TurnsConfig& config) {
  TurnSchedule::Settings settings;
  settings.turn_ns = config.turn_us * 1000;
  settings.grace_ns = config.grace_us * 1000;
  return settings;
}

TurnSchedule::Says Read(const wire::TurnWords& words) {
  TurnSchedule::Says says;
  says.submitted = words.submitted.load(std::memory_order_relaxed);
  says.running = words.running.load(std::memory_order_relaxed) != 0;
  says.waiting = words.waiting.load(std::memory_order_relaxed) != 0;
  return says;
}

}  // namespace

TurnGiver::~TurnGiver() {
  bool started = false;
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
    started = started_;
  }
  if (started) ended_.WaitForNotification();
}

void TurnGiver::Configure(const TurnsConfig& config) {
  absl::MutexLock lock(&mutex_);
  config_ = config;
  for (auto& [device, schedule] : schedules_) schedule.Configure(SettingsOf(config));
}

absl::StatusOr<TurnGiver::Pages> TurnGiver::MakePages(Worker* worker) {
  Pages pages;
  ASSIGN_OR_RETURN(os::OwnersMemory orders,
                   os::CreateOwnersMemory("sluice-turn", wire::kTurnPageBytes));
  ASSIGN_OR_RETURN(pages.words, os::CreateSharedMemory("sluice-turn-words", wire::kTurnPageBytes));
  ASSIGN_OR_RETURN(worker->words, os::SharedMapping::Map(pages.words.get(), wire::kTurnPageBytes,
                                                         /*writable=*/false));
  worker->orders = std::move(orders.mapping);
  pages.orders = std::move(orders.reader);
  return pages;
}

TurnGiver::Pages TurnGiver::Add(uint64_t id, const Account& account) {
  absl::MutexLock lock(&mutex_);
  if (config_.mode == TurnsConfig::Mode::kOff || !unavailable_.empty()) return Pages();
  Worker worker;
  worker.payer = {account.name, account.share};
  absl::StatusOr<Pages> pages = MakePages(&worker);
  if (!pages.ok()) {
    unavailable_ = std::string(pages.status().message());
    Log(LogLevel::kInfo, "broker", "workers take no turns on this system",
        {{"reason", unavailable_}});
    return Pages();
  }
  workers_[id] = std::move(worker);
  StartThread();
  return *std::move(pages);
}

void TurnGiver::StartThread() {
  if (started_) return;
  started_ = os::StartThread("sluice-turns", [this] { Run(); });
  // Pages that nobody writes to hold nobody back.
  if (!started_) Log(LogLevel::kWarning, "broker", "no thread for turns between workers");
}

void TurnGiver::LeaveDevice(uint64_t id, Worker* worker) {
  const auto schedule = schedules_.find(std::exchange(worker->device, 0));
  if (schedule == schedules_.end()) return;
  schedule->second.Remove(id);
  if (schedule->second.size() == 0) schedules_.erase(schedule);
}

void TurnGiver::Remove(uint64_t id) {
  absl::MutexLock lock(&mutex_);
  const auto found = workers_.find(id);
  if (found == workers_.end()) return;
  LeaveDevice(id, &found->second);
  workers_.erase(found);
}

void TurnGiver::Run() {
  os::AskForPreciseSleeps();
  while (true) {
    int64_t wait = 0;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &TurnGiver::HasWork));
      if (stop_) break;
      wait = Look();
      if (wait > kShortSleepNs) {
        mutex_.AwaitWithTimeout(absl::Condition(this, &TurnGiver::MayStop),
                                absl::Nanoseconds(wait));
        continue;
      }
    }
    // A sleep would end late, and the device has nothing to do meanwhile.
    if (wait > TurnSchedule::kCloseLookNs) os::SleepNs(wait);
  }
  ended_.Notify();
}

void TurnGiver::NoteAll(int64_t now) {
  for (auto& [id, worker] : workers_) {
    const uint64_t device = worker.says().device.load(std::memory_order_relaxed);
    if (device != worker.device) {
      LeaveDevice(id, &worker);
      worker.device = device;
    }
    if (device == 0) continue;
    schedules_.try_emplace(device, SettingsOf(config_))
        .first->second.Note(id, Read(worker.says()), now, worker.payer);
  }
}

int64_t TurnGiver::Look() {
  const int64_t now = wire::MonotonicNs();
  NoteAll(now);
  int64_t wait = TurnSchedule::kSleepySampleNs;
  any_orders_ = false;
  for (auto& [device, schedule] : schedules_) {
    // A lone one is asked too: it may have been left by the others in the midst of turns.
    wait = std::min(wait, schedule.Decide(now));
  }
  for (auto& [id, worker] : workers_) {
    const auto schedule = schedules_.find(worker.device);
    const wire::TurnOrder order =
        schedule == schedules_.end() ? wire::TurnOrder::kFree : schedule->second.OrderOf(id);
    wire::TurnOrders& page = worker.order();
    if (order != wire::TurnOrder::kFree) {
      any_orders_ = true;
      page.heartbeat_ns.store(wire::MonotonicNs(), std::memory_order_relaxed);
    }
    const auto value = static_cast<uint32_t>(order);
    if (page.order.load(std::memory_order_relaxed) == value) continue;
    page.order.store(value, std::memory_order_release);
    if (order != wire::TurnOrder::kWait) os::FutexWake(&page.order, INT_MAX, ~0U);
  }
  return wait;
}

TurnGiver::Told TurnGiver::Tell(uint64_t id) const {
  absl::MutexLock lock(&mutex_);
  Told told;
  const auto worker = workers_.find(id);
  if (worker == workers_.end()) {
    told.state =
        absl::StrCat("off: ", unavailable_.empty() ? "by the configuration" : unavailable_);
    return told;
  }
  const auto schedule = schedules_.find(worker->second.device);
  if (schedule == schedules_.end()) {
    const bool used = worker->second.says().submitted.load(std::memory_order_relaxed) != 0;
    told.state = worker->second.device != 0 ? "off: alone"
                 : used                     ? "off: the device has no use for them"
                                            : "off: no work yet";
    return told;
  }
  const TurnSchedule::Had had = schedule->second.HadBy(id);
  told.turns = had.turns;
  told.waited_us = static_cast<uint64_t>(had.waited_ns / 1000);
  switch (schedule->second.state(wire::MonotonicNs())) {
    case TurnSchedule::State::kTurns:
      told.state = "on";
      break;
    case TurnSchedule::State::kLongWork:
      told.state = "off: work is longer than a turn";
      break;
    case TurnSchedule::State::kNoTurns:
      told.state = schedule->second.size() < 2 ? "off: alone" : "off: no two are at work";
      break;
  }
  return told;
}

}  // namespace sluice::broker
