// SPDX-License-Identifier: Apache-2.0
//
// When devices are asked for: at the start, after each reload of the configuration, when the
// machine's memory has changed, and when devices may have changed (probe_schedule.h). One probe
// runs at a time.
//
// Owner: the Broker. Loop thread only; probe().Copy alone is thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "broker/children/worker_launcher.h"
#include "broker/config/config.h"
#include "broker/event_loop.h"
#include "broker/probe.h"
#include "broker/probe_schedule.h"

namespace sluice::broker {

class DeviceProbes {
 public:
  // `on_result` is called by the loop after each probe, and never from within a method of this.
  DeviceProbes(EventLoop* loop, std::function<void()> on_result);
  ~DeviceProbes();

  // For probes that start from now on. `launcher` is the caller's and outlives this.
  void Configure(const Config& config, const WorkerLauncher* launcher);

  // Starts one, or another after the one that runs, which began with an older configuration.
  void Start();
  // A worker's driver has failed, or lacks a device that clients know.
  void OnHint();
  // From now on, starts a probe whenever the machine's memory has changed.
  void WatchMemory();

  const Probe& probe() const { return probe_; }

 private:
  void Plan(std::optional<int64_t> delay_ms);  // Nothing: none.
  void OnDone();

  EventLoop* const loop_;
  const std::function<void()> on_result_;
  const WorkerLauncher* launcher_ = nullptr;
  uint64_t memory_limit_ = 0;  // Of one session; 0: none.
  int64_t timeout_ms_ = 0;

  Probe probe_;
  ProbeSchedule schedule_;
  EventLoop::TimerId timer_ = 0;
  bool start_again_ = false;    // Once the one that runs has ended.
  uint64_t probed_memory_ = 0;  // MachineMemoryBytes, when the probe began.
};

}  // namespace sluice::broker
