// SPDX-License-Identifier: Apache-2.0
// Finds the network transport's two functions. On Linux in libsluice_remote.so, loaded the first
// time a remote endpoint is used: it brings gRPC and TLS, which an application with a local daemon
// need not carry. Looked for beside this library, then in ../lib/sluice and sluice/ below it. In a
// process where gRPC cannot be, a helper program beside it stands in (network_helper.h). On Windows
// linked into the driver (remote/remote_linked.cc): each DLL has symbols of its own there, so that
// nothing can clash. Thread-safe.
#pragma once

#include "absl/status/statusor.h"
#include "client_icd/session/transport.h"

namespace sluice::client {

struct RemoteFunctions {
  SluiceRemoteConnect* connect = nullptr;
  SluiceRemoteDescribe* describe = nullptr;
};

absl::StatusOr<RemoteFunctions> FindRemoteFunctions();

}  // namespace sluice::client
