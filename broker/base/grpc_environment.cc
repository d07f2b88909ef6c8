// SPDX-License-Identifier: Apache-2.0
#include "broker/base/grpc_environment.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "broker/os/daemon_process.h"
#include "broker/os/lasting_thread.h"
#include "broker/os/this_process.h"

namespace sluice {
namespace {

// gRPC takes the first name of the list that it knows: no spaces, and small letters.
bool GrpcCanWait(std::string_view list) {
  while (true) {
    const size_t comma = std::min(list.find(','), list.size());
    const std::string_view name = list.substr(0, comma);
    if (name == "all" || name == "epoll1" || name == "poll") return true;
    if (name == "none" || comma == list.size()) return false;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace

absl::Status CheckGrpcEnvironment() {
  // There gRPC waits by completion ports, and does not read the variable.
  if (os::IoEndsWithItsThread()) return absl::OkStatus();
  const std::optional<std::string> value = os::EnvironmentVariable(kGrpcPollStrategy);
  if (!value.has_value() || GrpcCanWait(*value)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(kGrpcPollStrategy, "=", *value,
                   " leaves gRPC no way to wait: unset it, or set it to epoll1 or poll"));
}

absl::Status MendGrpcEnvironment() {
  absl::Status status = CheckGrpcEnvironment();
  if (!status.ok()) os::ForgetVariable(kGrpcPollStrategy);
  return status;
}

}  // namespace sluice
