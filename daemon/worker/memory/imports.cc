// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/memory/imports.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/os/local_socket.h"
#include "proto/handle_messages.h"
#include "proto/status_macros.h"

namespace sluice::worker {

absl::Status Imports::Receive() {
  absl::MutexLock lock(&mu_);
  return ReceiveLocked();
}

absl::Status Imports::ReceiveLocked() {
  while (true) {
    const absl::Status readable = os::WaitReadable(channel_, 0);
    if (absl::IsDeadlineExceeded(readable)) return absl::OkStatus();
    RETURN_IF_ERROR(readable);
    RETURN_IF_ERROR(ReceiveOneLocked());
  }
}

absl::Status Imports::ReceiveOneLocked() {
  wire::HandleMessage message;
  std::vector<os::UniqueFd> fds;
  ASSIGN_OR_RETURN(const size_t bytes,
                   os::ReceiveMessage(channel_, &message, sizeof(message), &fds, 1));
  if (bytes == 0) return absl::AbortedError("the client has gone");
  if (bytes != sizeof(message) || message.magic != wire::kHandleMagic ||
      message.type != wire::HandleMessageType::kImportHandle || fds.size() != 1) {
    return absl::InvalidArgumentError("a message on the handle channel that is none");
  }
  if (waiting_.size() >= kMaxWaiting) {
    return absl::InvalidArgumentError(
        absl::StrCat("more than ", kMaxWaiting, " descriptors that no command asked for"));
  }
  if (!waiting_.try_emplace(message.address, std::move(fds[0])).second) {
    return absl::InvalidArgumentError(
        absl::StrCat("a second descriptor for token ", message.address));
  }
  return absl::OkStatus();
}

absl::StatusOr<os::UniqueFd> Imports::Take(uint64_t token) {
  absl::MutexLock lock(&mu_);
  auto it = waiting_.find(token);
  while (it == waiting_.end()) {
    const absl::Status readable = os::WaitReadable(channel_, os::kDeliveryMs);
    if (absl::IsDeadlineExceeded(readable)) {
      return absl::InvalidArgumentError(absl::StrCat("no descriptor came under token ", token,
                                                     " before the command that names it"));
    }
    RETURN_IF_ERROR(readable);
    RETURN_IF_ERROR(ReceiveOneLocked());
    it = waiting_.find(token);
  }
  os::UniqueFd fd = std::move(it->second);
  waiting_.erase(it);
  return fd;
}

}  // namespace sluice::worker
