// SPDX-License-Identifier: Apache-2.0
//
// The messages of broker and gateway to each other after the first ones (broker_messages.h, whose
// rules hold here).
#pragma once

#include <cstddef>
#include <cstdint>

#include "proto/broker_messages.h"

namespace sluice::wire {

// broker -> gateway that has the feature: the entry's files anew, one descriptor for each bit of
// `files`, the lowest bit's first. The gateway keeps what it has if one of them is bad.
inline constexpr char kFeatureGatewayFiles[] = "gateway-files";
inline constexpr uint32_t kFileCertificate = 1;
inline constexpr uint32_t kFileKey = 2;
inline constexpr uint32_t kFileClientCa = 4;
inline constexpr uint32_t kFileClientCrl = 8;
inline constexpr uint32_t kFileTokens = 16;
inline constexpr uint32_t kFileTokenKeys = 32;
inline constexpr size_t kMostGatewayFiles = 6;
struct GatewayFiles {
  static constexpr MessageType kType = MessageType::kGatewayFiles;
  MessageHeader header;
  uint32_t files;
  uint32_t reserved;
};
static_assert(sizeof(GatewayFiles) == 16);

// gateway -> broker: as GatewayOpen, on the terms of a token that a cluster has signed for the tenant
// (network/signed_token.h). From a gateway that was started with the keys of such tokens.
struct GatewayOpenTenant {
  static constexpr MessageType kType = MessageType::kGatewayOpenTenant;
  MessageHeader header;
  uint64_t request_id;
  uint32_t flags;
  uint32_t share;         // 1 to 10000.
  uint64_t max_sessions;  // 0: as everybody has.
  uint64_t memory_bytes;  // Of each session; 0 likewise.
  char peer[128];
  char process_name[64];
};
static_assert(sizeof(GatewayOpenTenant) == 232);
static_assert(sizeof(GatewayOpenTenant) <= kMaxBrokerMessageBytes);

}  // namespace sluice::wire
