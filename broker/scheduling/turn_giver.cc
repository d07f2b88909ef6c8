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

// A shorter sleep on the mutex would end late.
constexpr int64_t kShortSleepNs = 1'000'000;

// Work submitted ahead of the device is at most this part of a turn.
constexpr int64_t kCreditsInTurn = 2;

// The same while an interactive account is at work: it waits for that too.
constexpr int64_t kInteractiveCreditNs = 200'000;

// On a CPU device the worker's threads must first be woken, on the same processors: turns are
// longer.
constexpr int64_t kTurnsOfProcessors = 4;

uint64_t DeviceOf(const wire::TurnWords& words) {
  const uint64_t device = words.device.load(std::memory_order_acquire);
  return device != 0 ? device : words.share_device.load(std::memory_order_acquire);
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

void TurnGiver::Configure(const TurnsConfig& config, bool divides_processors) {
  absl::MutexLock lock(&mutex_);
  config_ = config;
  divides_processors_ = divides_processors;
}

TurnSchedule::Settings TurnGiver::SettingsFor(const wire::TurnWords& words) const {
  using Shares = TurnSchedule::Settings::Shares;
  TurnSchedule::Settings settings;
  settings.turn_ns = config_.turn_us * 1000;
  settings.grace_ns = config_.grace_us * 1000;
  settings.turns = words.device.load(std::memory_order_relaxed) != 0;
  settings.is_cpu = words.is_cpu.load(std::memory_order_relaxed) != 0;
  if (config_.shares == TurnsConfig::Shares::kOff) return settings;
  if (config_.shares == TurnsConfig::Shares::kOn) {
    settings.shares = Shares::kAlways;
  } else {
    settings.shares = settings.is_cpu && divides_processors_ ? Shares::kNever : Shares::kUneven;
  }
  if (settings.is_cpu && !settings.turns) {
    settings.turn_ns *= kTurnsOfProcessors;
    settings.grace_ns *= kTurnsOfProcessors;
  }
  return settings;
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
  const bool wanted =
      config_.mode != TurnsConfig::Mode::kOff || config_.shares != TurnsConfig::Shares::kOff;
  if (!wanted || !unavailable_.empty()) return Pages();
  Worker worker;
  worker.payer = {account.name, account.share, account.interactive_percent};
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
  // Nobody writes the pages then, and no worker waits by them.
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
    const uint64_t device = DeviceOf(worker.says());
    if (device != worker.device) {
      LeaveDevice(id, &worker);
      worker.device = device;
    }
    if (device == 0) continue;
    TurnSchedule::Settings settings = SettingsFor(worker.says());
    TurnSchedule& schedule = schedules_.try_emplace(device, settings).first->second;
    settings.turns |= schedule.settings().turns;
    schedule.Configure(settings);
    schedule.Note(id, Read(worker.says()), now, worker.payer);
  }
}

int64_t TurnGiver::Look() {
  const int64_t now = wire::MonotonicNs();
  NoteAll(now);
  int64_t wait = TurnSchedule::kSleepySampleNs;
  any_orders_ = false;
  for (auto& [device, schedule] : schedules_) {
    // A lone worker's schedule is asked too: the others may have left in the midst of turns.
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
    const bool short_credit = schedule != schedules_.end() && schedule->second.HasInteractive(now);
    page.credit_ns.store(
        short_credit ? kInteractiveCreditNs : config_.turn_us * 1000 / kCreditsInTurn,
        std::memory_order_relaxed);
    page.order.store(value, std::memory_order_release);
    if (order != wire::TurnOrder::kWait) os::FutexWake(&page.order, INT_MAX, ~0U);
  }
  return wait;
}

TurnGiver::Report TurnGiver::ReportOf(uint64_t id) const {
  absl::MutexLock lock(&mutex_);
  Report report;
  const auto worker = workers_.find(id);
  if (worker == workers_.end()) {
    report.shares = report.state =
        absl::StrCat("off: ", unavailable_.empty() ? "by the configuration" : unavailable_);
    return report;
  }
  const auto found = schedules_.find(worker->second.device);
  const TurnSchedule* const schedule = found == schedules_.end() ? nullptr : &found->second;
  if (schedule != nullptr) {
    const TurnSchedule::Usage usage = schedule->UsageOf(id);
    report.turns = usage.turns;
    report.waited_us = static_cast<uint64_t>(usage.waited_ns / 1000);
    report.device_us = static_cast<uint64_t>(usage.device_ns / 1000);
  }
  report.state = DescribeTurns(worker->second, schedule);
  report.shares = DescribeShares(schedule);
  return report;
}

std::string TurnGiver::DescribeTurns(const Worker& worker, const TurnSchedule* schedule) const {
  using State = TurnSchedule::State;
  const State state = schedule == nullptr ? State::kNoTurns : schedule->state(wire::MonotonicNs());
  if (state == State::kTurns || state == State::kWindows) return "on";
  if (config_.mode == TurnsConfig::Mode::kOff) return "off: by the configuration";
  if (DeviceOf(worker.says()) == 0) return "off: no work yet";
  if (worker.says().device.load(std::memory_order_relaxed) == 0)
    return "off: the device has no use for them";
  if (schedule == nullptr) return "off: alone";
  if (state == State::kLongWork) return "off: work is longer than a turn";
  return schedule->size() < 2 ? "off: alone" : "off: no two are at work";
}

std::string TurnGiver::DescribeShares(const TurnSchedule* schedule) const {
  if (config_.shares == TurnsConfig::Shares::kOff) return "off: by the configuration";
  if (schedule == nullptr) return "off: no two accounts are at work";
  if (schedule->state(wire::MonotonicNs()) == TurnSchedule::State::kWindows) return "on";
  switch (schedule->settings().shares) {
    case TurnSchedule::Settings::Shares::kNever:
      return "off: the kernel divides the processors";
    case TurnSchedule::Settings::Shares::kUneven:
      return "off: no two accounts are at work that differ in share or sessions";
    case TurnSchedule::Settings::Shares::kAlways:
      break;
  }
  return "off: no two accounts are at work";
}

}  // namespace sluice::broker
