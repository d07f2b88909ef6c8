// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/remote_client.h"

extern "C" {
// client_icd/remote/remote_entry.cc
SluiceRemoteDescribe sluice_remote_describe;
SluiceRemoteSilenceGrpc sluice_remote_silence_grpc;
}

namespace sluice::ctl {

absl::StatusOr<RemoteDescriber> FindRemoteDescriber() {
  return RemoteDescriber{&sluice_remote_describe, &sluice_remote_silence_grpc};
}

}  // namespace sluice::ctl
