// SPDX-License-Identifier: Apache-2.0
//
// A client asks its broker what its account may have of everything that is limited, and what it has
// at the moment. It is told of its own account alone. Messages are as those of broker_messages.h.
//
//   client            broker
//     | -- AskQuotas --> |     only to a broker whose Welcome names the feature
//     | <- Quotas ------ |
#pragma once

#include <cstddef>
#include <cstdint>

#include "proto/broker_messages.h"

namespace sluice::wire {

inline constexpr char kFeatureQuotas[] = "quotas";

// Kinds are added, and never change meaning. A receiver skips those that it does not know.
enum class QuotaKind : uint32_t {
  kSessions = 1,
  kConnections = 2,
  kDeviceMemory = 3,  // Bytes of all sessions' OpenCL objects; used: what was granted.
  kHostMemory = 4,    // Bytes of all workers, as their control group counts them.
  kProcesses = 5,     // Of all workers, threads counted.
  kResources = 6,
  kResourceBytes = 7,
  kResourceConnections = 8,
  kCacheBytes = 9,       // Of its isolation domains' caches.
  kObjects = 10,         // As many sessions as it may have, times the limit of each.
  kQueuedCommands = 11,  // Likewise.
};

// The name that operators and programs see; null for a kind that is not known here.
inline const char* QuotaName(QuotaKind kind) {
  switch (kind) {
    case QuotaKind::kSessions:
      return "sessions";
    case QuotaKind::kConnections:
      return "connections";
    case QuotaKind::kDeviceMemory:
      return "device_memory_bytes";
    case QuotaKind::kHostMemory:
      return "host_memory_bytes";
    case QuotaKind::kProcesses:
      return "processes";
    case QuotaKind::kResources:
      return "resources";
    case QuotaKind::kResourceBytes:
      return "resource_bytes";
    case QuotaKind::kResourceConnections:
      return "resource_connections";
    case QuotaKind::kCacheBytes:
      return "cache_bytes";
    case QuotaKind::kObjects:
      return "objects";
    case QuotaKind::kQueuedCommands:
      return "queued_commands";
  }
  return nullptr;
}

// client -> broker.
struct AskQuotas {
  static constexpr MessageType kType = MessageType::kAskQuotas;
  MessageHeader header;
};
static_assert(sizeof(AskQuotas) == 8);

struct Quota {
  uint32_t kind;     // QuotaKind.
  uint32_t counted;  // 1: `used` is known; else 0.
  uint64_t used;
  uint64_t limit;  // 0: none.
};
static_assert(sizeof(Quota) == 24);

inline constexpr size_t kMostQuotas = 32;

// broker -> client.
struct Quotas {
  static constexpr MessageType kType = MessageType::kQuotas;
  MessageHeader header;
  uint32_t count;     // Of `quotas`.
  uint32_t reserved;  // 0.
  char account[128];  // "uid:1000".
  Quota quotas[kMostQuotas];
};
static_assert(sizeof(Quotas) == 912 && sizeof(Quotas) <= kMaxBrokerMessageBytes);

}  // namespace sluice::wire
