// SPDX-License-Identifier: Apache-2.0
// Bytes that two processes know without telling each other, different for each seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::os {

inline std::vector<uint8_t> Pattern(uint32_t seed, size_t size) {
  std::vector<uint8_t> bytes(size);
  uint32_t state = seed * 2654435761u + 12345u;
  for (uint8_t& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<uint8_t>(state >> 24);
  }
  return bytes;
}

}  // namespace sluice::os
