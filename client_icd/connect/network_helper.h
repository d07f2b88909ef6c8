// SPDX-License-Identifier: Apache-2.0
// The network transport in a process of its own, for processes in which gRPC cannot be. Such are
// the child of a fork whose parent has used it, a process that has closed all descriptors, one that
// has another kind of gRPC. The program sluice-network-helper (remote/network_helper_main.cc) lies
// beside libsluice_remote.so. It talks to the daemon, and to this process through a pair of rings,
// as a local worker does. This process does not see it as a child (platform_linux/keeper.h), and it
// ends with this end of its socket.
//
//   sluice-network-helper connect ENDPOINT              descriptor 3: a socket of local_socket.h
//   sluice-network-helper describe ENDPOINT TIMEOUT_MS
//
// It answers with one HelperAnswer. A description comes with one descriptor, a sealed copy of the
// snapshot; after a good `connect` come a RingOffer and, in the rings, the session's frames,
// without shared memory. Its messages are checked as a daemon's are. Thread-safe. Linux only.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "client_icd/connect/remote_library.h"

namespace sluice::client {

inline constexpr char kNetworkHelper[] = "sluice-network-helper";
inline constexpr int kHelperSocket = 3;
inline constexpr uint32_t kHelperMagic = 0x50484c53;  // "SLHP"

enum class HelperStatus : uint32_t { kOk = 0, kRefused = 1, kFailed = 2 };

struct HelperAnswer {
  uint32_t magic;
  HelperStatus status;
  uint64_t max_in_flight;
  char message[256];  // Why not, or, of a description, the daemon's version; terminated.
};
static_assert(sizeof(HelperAnswer) == 272);

// Starts a helper for each session and description. The error says that it is not installed.
absl::StatusOr<RemoteFunctions> FindNetworkHelper();

}  // namespace sluice::client
