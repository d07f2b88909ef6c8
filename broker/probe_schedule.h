// SPDX-License-Identifier: Apache-2.0
//
// Decides when to look for devices again: while there are none, and after a hint that they may have
// changed (a worker's driver has failed, or lacks a device that clients know). A driver may be
// reloaded, a device may fall off its bus and come back, or the daemon may have started before its
// device.
//
// Each look that changes nothing doubles the pause before the next, so that a tenant whose kernels
// crash their worker on purpose costs the machine little.
//
// Owner: Broker. Thread-compatible; no clock, no timers: times are the caller's, in milliseconds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace sluice::broker {

class ProbeSchedule {
 public:
  static constexpr int64_t kFirstPauseMs = 1'000;
  static constexpr int64_t kLongestPauseMs = 60'000;

  // Returns how long to wait for the probe; nothing if one is due already.
  std::optional<int64_t> OnHint(int64_t now) {
    if (is_due_) return std::nullopt;
    if (now - ended_ms_ >= 2 * kLongestPauseMs) pause_ms_ = kFirstPauseMs;
    is_due_ = true;
    return std::max(kFirstPauseMs, ended_ms_ + pause_ms_ - now);
  }

  // Whatever is due has begun.
  void OnStart() { is_due_ = true; }

  // After a probe. `changed`: it told something else than the one before. Returns how long to wait
  // for the next; nothing if none is needed.
  std::optional<int64_t> OnResult(bool found, bool changed, int64_t now) {
    pause_ms_ = changed ? kFirstPauseMs : std::min(2 * pause_ms_, kLongestPauseMs);
    ended_ms_ = now;
    is_due_ = !found;
    return found ? std::nullopt : std::optional<int64_t>(pause_ms_);
  }

 private:
  bool is_due_ = false;  // Planned or running.
  int64_t pause_ms_ = kFirstPauseMs;
  int64_t ended_ms_ = -2 * kLongestPauseMs;
};

}  // namespace sluice::broker
