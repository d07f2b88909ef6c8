// SPDX-License-Identifier: Apache-2.0
#include "client_icd/connect/remote_plugin.h"

#include "client_icd/connect/connect_limit.h"
#include "client_icd/connect/remote_library.h"
#include "proto/status_macros.h"

namespace sluice::client {

absl::StatusOr<std::string> DescribeRemote(const std::string& target, std::string* version) {
  ASSIGN_OR_RETURN(const RemoteFunctions remote, FindRemoteFunctions());
  const uint32_t timeout_ms = ConnectLimitMs().value_or(kRemoteAnswerTimeoutMs);
  std::string snapshot;
  char said[1024] = "";
  const auto deliver = [](void* to, const char* data, uint64_t bytes) {
    static_cast<std::string*>(to)->assign(data, bytes);
  };
  if (!remote.describe(target.c_str(), timeout_ms, deliver, &snapshot, said, sizeof(said)))
    return absl::UnavailableError(said);
  *version = said;
  return snapshot;
}

absl::StatusOr<std::unique_ptr<Transport>> ConnectRemote(const std::string& target) {
  ASSIGN_OR_RETURN(const RemoteFunctions remote, FindRemoteFunctions());
  char error[1024] = "";
  bool refused = false;
  std::unique_ptr<Transport> transport(
      remote.connect(target.c_str(), &refused, error, sizeof(error)));
  if (transport == nullptr) {
    return refused ? absl::ResourceExhaustedError(error) : absl::UnavailableError(error);
  }
  return transport;
}

}  // namespace sluice::client
