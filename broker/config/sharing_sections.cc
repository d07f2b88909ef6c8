// SPDX-License-Identifier: Apache-2.0
#include "broker/config/sharing_sections.h"

#include <algorithm>
#include <string>

#include "broker/config/config_keys.h"
#include "broker/config/config_reader.h"

namespace sluice::broker {
namespace {

// With less no worker gets as far as its driver.
constexpr uint64_t kLeastMemory = 64 << 20;
// With fewer none gets as far as its first kernel.
constexpr uint64_t kFewestProcesses = 16;

}  // namespace

void ReadScheduling(SectionReader section, TurnsConfig* turns) {
  const std::string fixed = FixedKeyReason("turns");
  const std::string allowed = fixed.empty() ? "one of auto, on, off" : fixed;
  section.Parsed("turns", allowed, [&](const std::string& text) {
    using Mode = TurnsConfig::Mode;
    turns->mode = text == "on" ? Mode::kOn : text == "off" ? Mode::kOff : Mode::kAuto;
    return text == "auto" || text == "off" || (fixed.empty() && text == "on");
  });
  section.Parsed("shares", allowed, [&](const std::string& text) {
    using Shares = TurnsConfig::Shares;
    turns->shares = text == "on" ? Shares::kOn : text == "off" ? Shares::kOff : Shares::kAuto;
    return text == "auto" || text == "off" || (fixed.empty() && text == "on");
  });
  section.Integer("turn_us", 500, 10'000, &turns->turn_us);
  section.Integer("turn_grace_us", 20, 1000, &turns->grace_us);
  section.Finish();
}

void ReadPool(SectionReader section, PoolConfig* pool) {
  constexpr int64_t kMostSessions = 128;
  section.Boolean("enabled", &pool->enabled, FixedKeyReason("pool"));
  section.Boolean("cpu_devices", &pool->cpu_devices);
  int64_t sessions = static_cast<int64_t>(pool->max_sessions);
  section.Integer("max_sessions", 2, kMostSessions, &sessions);
  pool->max_sessions = static_cast<uint64_t>(sessions);
  section.Integer("idle_seconds", 0, 3600, &pool->idle_seconds);
  section.Finish();
}

void ReadControlGroups(SectionReader section, ControlGroupsConfig* groups) {
  const std::string fixed = FixedKeyReason("control_groups");
  section.Parsed("enabled", fixed.empty() ? "one of auto, required, off" : fixed,
                 [&](const std::string& text) {
                   using Use = ControlGroupsConfig::Use;
                   groups->enabled = text == "required" ? Use::kRequired
                                     : text == "off"    ? Use::kOff
                                                        : Use::kAuto;
                   return text == "auto" ||
                          (fixed.empty() && (text == "required" || text == "off"));
                 });
  section.Bytes("memory_reserve", &groups->memory_reserve, kLeastMemory);
  section.Bytes("memory_bytes_per_account", &groups->memory_bytes_per_account, kLeastMemory);
  section.Bytes("memory_bytes_per_worker", &groups->memory_bytes_per_worker, kLeastMemory);
  section.Count("processes_per_account", 0, &groups->processes_per_account);
  section.Count("processes_per_worker", 0, &groups->processes_per_worker);
  for (uint64_t* value : {&groups->processes_per_account, &groups->processes_per_worker})
    if (*value != 0) *value = std::max(*value, kFewestProcesses);
  section.Finish();
}

}  // namespace sluice::broker
