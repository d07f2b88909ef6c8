// SPDX-License-Identifier: Apache-2.0
//
// Messages between broker and worker about an account's part of device memory, and about sessions
// that start (broker_messages.h, whose rules hold here). Also how a client is told what its account
// may have.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "proto/broker_messages.h"

namespace sluice::wire {

// worker -> broker, once: its driver is loaded, and it has offered its client the rings.
struct WorkerReady {
  static constexpr MessageType kType = MessageType::kWorkerReady;
  MessageHeader header;
};
static_assert(sizeof(WorkerReady) == 8);

// worker -> broker, one at a time: it needs so many bytes more than it has been granted. Only of a
// worker that was started with a limit of its account.
struct WantMemory {
  static constexpr MessageType kType = MessageType::kWantMemory;
  MessageHeader header;
  uint32_t ahead;  // 1: nothing waits for it. Else 0.
  uint32_t reserved;
  uint64_t serial;  // Echoed.
  uint64_t bytes;
};
static_assert(sizeof(WantMemory) == 32);

// broker -> worker: it may have so many bytes more. Fewer than it needs, unless it asked ahead: the
// account has no more.
struct GrantMemory {
  static constexpr MessageType kType = MessageType::kGrantMemory;
  MessageHeader header;
  uint64_t serial;
  uint64_t bytes;
};
static_assert(sizeof(GrantMemory) == 24);

// broker -> worker: another of the account's needs memory. It answers with what it gives back.
struct SpareMemory {
  static constexpr MessageType kType = MessageType::kSpareMemory;
  MessageHeader header;
};
static_assert(sizeof(SpareMemory) == 8);

// worker -> broker, once for each SpareMemory.
struct MemoryReturned {
  static constexpr MessageType kType = MessageType::kMemoryReturned;
  MessageHeader header;
  uint64_t bytes;
};
static_assert(sizeof(MemoryReturned) == 16);

// Among a Welcome's features: what the smallest of the limits on the client's memory is. Devices
// have no more than that for it. No limit: not there.
inline constexpr std::string_view kMemoryFeature = "memory:";

inline std::string MemoryFeature(uint64_t bytes) {
  return std::string(kMemoryFeature) + std::to_string(bytes);
}

// 0 if the features tell none.
inline uint64_t MemoryIn(std::string_view features) {
  while (!features.empty()) {
    const size_t end = features.find(',') < features.size() ? features.find(',') : features.size();
    std::string_view feature = features.substr(0, end);
    features.remove_prefix(end < features.size() ? end + 1 : end);
    if (!feature.starts_with(kMemoryFeature)) continue;
    feature.remove_prefix(kMemoryFeature.size());
    uint64_t bytes = 0;
    const char* const last = feature.data() + feature.size();
    const auto [read, error] = std::from_chars(feature.data(), last, bytes);
    if (error == std::errc() && read == last) return bytes;
  }
  return 0;
}

}  // namespace sluice::wire
