// SPDX-License-Identifier: Apache-2.0
#include "client_icd/connect/broker_greeting.h"

#include <errno.h>
#include <string.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "broker/base/peer_version.h"
#include "broker/os/this_process.h"
#include "client_icd/connect/connect_limit.h"

namespace sluice::client {
namespace {

constexpr int kConnectTimeoutMs = 1'000;
// Longer than an answer takes: the service manager may have to start the daemon first.
constexpr int kGreetingTimeoutMs = 10'000;

}  // namespace

std::string BrokerRefusal(const char* what, int status, const char* message) {
  return absl::StrCat(what, ": ", message[0] != '\0' ? message : ::strerror(status));
}

absl::StatusOr<os::UniqueFd> GreetBroker(const std::string& path, const char* features,
                                         wire::Welcome* welcome, std::vector<os::UniqueFd>* fds) {
  const std::optional<int> chosen = ConnectLimitMs();
  const int limit_ms = chosen.value_or(kGreetingTimeoutMs);
  const AnswerTime time(limit_ms);
  ASSIGN_OR_RETURN(os::UniqueFd socket, os::ConnectLocal(path, chosen.value_or(kConnectTimeoutMs)));
  wire::Hello hello = wire::MakeMessage<wire::Hello>();
  wire::SetString(hello.features, absl::StrCat(features, ",", VersionFeature()));
  wire::SetString(hello.process_name, os::ProcessName());
  const auto ask = [&]() -> absl::StatusOr<wire::Welcome> {
    RETURN_IF_ERROR(os::SendMessage(socket.get(), &hello, sizeof(hello)));
    return ReceiveFromBroker<wire::Welcome>(socket.get(), time, fds, 1);
  };
  absl::StatusOr<wire::Welcome> answer = ask();
  if (absl::IsDeadlineExceeded(answer.status()))
    return absl::DeadlineExceededError(NoAnswerWithin(limit_ms));
  if (absl::IsInvalidArgument(answer.status())) {
    return absl::InvalidArgumentError(
        absl::StrCat(answer.status().message(), "; ", VersionAdvice("client", "daemon", "")));
  }
  ASSIGN_OR_RETURN(*welcome, std::move(answer));
  if (welcome->status != 0) {
    return absl::PermissionDeniedError(
        BrokerRefusal("the daemon refuses this user", welcome->status, welcome->message));
  }
  return socket;
}

}  // namespace sluice::client
