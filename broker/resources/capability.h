// SPDX-License-Identifier: Apache-2.0
//
// A capability opens a resource: its public id and 128 random bits, 24 bytes together. There are
// two per resource, for reading and for writing; whoever has the bytes has the right.
//
// Thread-safe. Secrets are compared in constant time, and never logged.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace sluice::broker {

struct Capability {
  static constexpr size_t kBytes = 24;

  uint64_t resource_id = 0;
  std::array<uint8_t, 16> secret = {};

  std::string Encode() const;
  static std::optional<Capability> Decode(std::string_view bytes);
};

// A secret from the kernel's random source, for `resource_id`. An error if that fails: never a
// guessable one.
absl::StatusOr<Capability> MakeCapability(uint64_t resource_id);

// A random id, not 0.
absl::StatusOr<uint64_t> MakeRandomId();

// Takes the same time whatever the bytes are.
bool SecretsEqual(const Capability& a, const Capability& b);

}  // namespace sluice::broker
