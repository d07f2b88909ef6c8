// SPDX-License-Identifier: Apache-2.0
//
// [scheduling], [pool] and [control_groups]: how tenants share device and machine. Plain data, as config.h.
#pragma once

#include <cstdint>

namespace sluice::broker {

class SectionReader;

// Turns between the workers of one device (broker/scheduling).
struct TurnsConfig {
  enum class Mode { kOff, kAuto, kOn };  // kAuto: where a switch between processes is dear.
  Mode mode = Mode::kAuto;
  int64_t turn_us = 2000;
  int64_t grace_us = 150;  // How long a holder with nothing to do keeps it.
  // Shares hold for work of any length. kAuto: where accounts at work differ in share or in
  // sessions, except on processors, if the kernel divides those.
  enum class Shares { kOff, kAuto, kOn };
  Shares shares = Shares::kAuto;
};

// Sessions of one isolation domain in one worker (children/pools.h).
struct PoolConfig {
  bool enabled = false;  // Of all but the listeners that say otherwise.
  bool cpu_devices = false;
  uint64_t max_sessions = 32;  // Of one pool.
  int64_t idle_seconds = 30;   // After its last session.
};

// The kernel's limits for accounts and their workers (children/worker_groups.h).
struct ControlGroupsConfig {
  enum class Use { kAuto, kRequired, kOff };  // kAuto: as far as the host has them.
  Use enabled = Use::kAuto;
  uint64_t memory_reserve = 256ULL << 20;  // For the daemon's own processes.
  uint64_t memory_bytes_per_account = 0;   // 0: seven eighths of what all have together.
  uint64_t memory_bytes_per_worker = 0;    // 0: as its account.
  // Threads count. 0: half of what all have together; 512, and two for each processor.
  uint64_t processes_per_account = 0;
  uint64_t processes_per_worker = 0;

  bool operator==(const ControlGroupsConfig&) const = default;
};

void ReadScheduling(SectionReader section, TurnsConfig* turns);
void ReadPool(SectionReader section, PoolConfig* pool);
void ReadControlGroups(SectionReader section, ControlGroupsConfig* groups);

}  // namespace sluice::broker
