// SPDX-License-Identifier: Apache-2.0
#include "broker/resources/capability.h"

#include <cstring>

#include "absl/status/status.h"
#include "broker/os/random.h"

namespace sluice::broker {

std::string Capability::Encode() const {
  std::string bytes(kBytes, '\0');
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(resource_id >> (8 * i));
  std::memcpy(bytes.data() + 8, secret.data(), secret.size());
  return bytes;
}

std::optional<Capability> Capability::Decode(std::string_view bytes) {
  if (bytes.size() != kBytes) return std::nullopt;
  Capability capability;
  for (int i = 0; i < 8; ++i) {
    capability.resource_id |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  }
  std::memcpy(capability.secret.data(), bytes.data() + 8, capability.secret.size());
  return capability;
}

absl::StatusOr<Capability> MakeCapability(uint64_t resource_id) {
  Capability capability;
  capability.resource_id = resource_id;
  const absl::Status filled = os::FillRandom(capability.secret.data(), capability.secret.size());
  if (!filled.ok()) return filled;
  return capability;
}

absl::StatusOr<uint64_t> MakeRandomId() {
  uint64_t id = 0;
  while (id == 0) {
    if (const absl::Status filled = os::FillRandom(&id, sizeof(id)); !filled.ok()) return filled;
  }
  return id;
}

bool SecretsEqual(const Capability& a, const Capability& b) {
  volatile uint8_t difference = 0;  // Volatile: no early end that a compiler could think of.
  for (size_t i = 0; i < a.secret.size(); ++i)
    difference = difference | (a.secret[i] ^ b.secret[i]);
  return difference == 0;
}

}  // namespace sluice::broker
