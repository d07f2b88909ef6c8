// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/remote_client.h"

#include <cstdint>

namespace sluice::ctl {

absl::StatusOr<std::string> DescribeNetwork(const std::string& target, int timeout_ms) {
  const absl::StatusOr<RemoteDescriber> remote = FindRemoteDescriber();
  if (!remote.ok()) return remote.status();
  remote->silence();  // Of this program, which says itself what went wrong.
  std::string snapshot;
  char error[1024] = "";
  const auto deliver = [](void* to, const char* data, uint64_t bytes) {
    static_cast<std::string*>(to)->assign(data, bytes);
  };
  if (!remote->describe(target.c_str(), static_cast<uint32_t>(timeout_ms), deliver, &snapshot,
                        error, sizeof(error))) {
    return absl::UnavailableError(error);
  }
  return snapshot;
}

}  // namespace sluice::ctl
