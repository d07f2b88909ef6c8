// SPDX-License-Identifier: Apache-2.0
#include "broker/device_probes.h"

#include <utility>

#include "broker/base/log.h"

namespace sluice::broker {

DeviceProbes::DeviceProbes(EventLoop* loop, std::function<void()> on_result)
    : loop_(loop), on_result_(std::move(on_result)), probe_(loop) {}

DeviceProbes::~DeviceProbes() {
  probe_.Cancel();
  loop_->CancelTimer(&timer_);
}

void DeviceProbes::Configure(const Config& config, const WorkerLauncher* launcher) {
  launcher_ = launcher;
  memory_limit_ = config.limits.memory_bytes;
  timeout_ms_ = config.probe_timeout_ms;
}

void DeviceProbes::Start() {
  loop_->CancelTimer(&timer_);
  schedule_.OnStart();
  if (probe_.running()) {
    start_again_ = true;
    return;
  }
  probed_memory_ = os::MachineMemoryBytes();
  // Not from within Start, whose caller may still be building what the result is for.
  probe_.Start(*launcher_, memory_limit_, timeout_ms_,
               [this] { loop_->Post([this] { OnDone(); }); });
}

void DeviceProbes::OnDone() {
  if (std::exchange(start_again_, false)) return Start();
  Plan(schedule_.OnResult(probe_.problem().empty(), probe_.changed(), MonotonicMs()));
  on_result_();
}

void DeviceProbes::OnHint() { Plan(schedule_.OnHint(MonotonicMs())); }

void DeviceProbes::Plan(std::optional<int64_t> delay_ms) {
  if (!delay_ms.has_value()) return;
  loop_->CancelTimer(&timer_);
  timer_ = loop_->AddTimer(*delay_ms, [this] {
    timer_ = 0;
    Start();
  });
}

// A driver for the processor reports the machine's memory, which a virtual machine is given and
// taken away while it runs. Clients that connect after a change get the new size.
void DeviceProbes::WatchMemory() {
  constexpr int64_t kLookMs = 2'000;
  constexpr uint64_t kLeastPart = 32;  // A smaller part of it is no change.
  loop_->AddTimer(kLookMs, [this] { WatchMemory(); });
  const uint64_t before = probed_memory_;
  const uint64_t now = os::MachineMemoryBytes();
  const uint64_t change = now > before ? now - before : before - now;
  if (probe_.running() || now == 0 || before == 0 || change <= before / kLeastPart) return;
  Log(LogLevel::kInfo, "broker", "the machine's memory has changed: asking the devices again",
      {{"bytes", now}, {"before", before}});
  Start();
}

}  // namespace sluice::broker
