// SPDX-License-Identifier: Apache-2.0
//
// How gRPC is tuned for a session's stream, the same at both ends: few large frames, a window wide
// enough for fast links, and a peer that has vanished noticed within half a minute.
#pragma once

#include <grpc/grpc.h>

#include <array>
#include <utility>

namespace sluice::wire {

// One message carries about a MiB of pieces (kNetworkMessageBytes), plus a last piece and its
// envelope.
inline constexpr int kMaxMessageBytes = 4 << 20;
inline constexpr int kKeepaliveTimeMs = 15'000;
inline constexpr int kKeepaliveTimeoutMs = 15'000;

inline std::array<std::pair<const char*, int>, 8> TransportArguments() {
  return {{
      {GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 8 << 20},  // The window: 10 Gbit/s at 6 ms.
      {GRPC_ARG_HTTP2_BDP_PROBE, 0},  // Which needs no probing, whose pings cost time.
      {GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 1 << 20},
      {GRPC_ARG_TCP_READ_CHUNK_SIZE, 64 << 10},
      {GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs},
      {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs},
      {GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0},  // Keepalive goes on while a long kernel runs.
      {GRPC_ARG_ENABLE_HTTP_PROXY, 0},             // The daemon is not reached through a web proxy.
  }};
}

}  // namespace sluice::wire
