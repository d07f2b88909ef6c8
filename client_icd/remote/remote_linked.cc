// SPDX-License-Identifier: Apache-2.0
// The network transport as a part of the driver, where it is linked into it.
#include "client_icd/connect/remote_library.h"

extern "C" {
// remote_entry.cc
sluice::client::SluiceRemoteConnect sluice_remote_connect;
SluiceRemoteDescribe sluice_remote_describe;
}

namespace sluice::client {

absl::StatusOr<RemoteFunctions> FindRemoteFunctions() {
  return RemoteFunctions{&sluice_remote_connect, &sluice_remote_describe};
}

}  // namespace sluice::client
