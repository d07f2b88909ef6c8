// SPDX-License-Identifier: Apache-2.0
//
// Asks a daemon on the network what it offers, as an application's driver would: through the
// driver's own transport, with the TLS files and the token that the environment names. Single
// thread.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "proto/remote_describe.h"

namespace sluice::ctl {

// Bytes of a PlatformSnapshot. `target` is HOST:PORT or dns:///NAME:PORT.
absl::StatusOr<std::string> DescribeNetwork(const std::string& target, int timeout_ms);

// The transport: in libsluice_remote.so, or on Windows linked (linux/, windows/).
struct RemoteDescriber {
  SluiceRemoteDescribe* describe;
  SluiceRemoteSilenceGrpc* silence;
};
absl::StatusOr<RemoteDescriber> FindRemoteDescriber();

}  // namespace sluice::ctl
