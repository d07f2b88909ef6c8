// SPDX-License-Identifier: Apache-2.0
#include "client_icd/broker_greeting.h"

#include <errno.h>
#include <string.h>

#include "absl/strings/str_cat.h"
#include "broker/os/this_process.h"

namespace sluice {
namespace {

constexpr int kConnectTimeoutMs = 1'000;
// Longer than an answer takes: the service manager may have to start the daemon first.
constexpr int kWelcomeTimeoutMs = 10'000;

}  // namespace

std::string BrokerRefusal(const char* what, int status, const char* message) {
  return absl::StrCat(what, ": ", message[0] != '\0' ? message : ::strerror(status));
}

absl::StatusOr<UniqueFd> GreetBroker(const std::string& path, const char* features,
                                     Welcome* welcome, std::vector<UniqueFd>* fds) {
  ASSIGN_OR_RETURN(UniqueFd socket, ConnectLocal(path, kConnectTimeoutMs));
  Hello hello = MakeMessage<Hello>();
  SetString(hello.features, features);
  SetString(hello.process_name, ProcessName());
  RETURN_IF_ERROR(SendMessage(socket.get(), &hello, sizeof(hello)));
  ASSIGN_OR_RETURN(*welcome, ReceiveFromBroker<Welcome>(socket.get(), kWelcomeTimeoutMs, fds, 1));
  if (welcome->status != 0) {
    return absl::PermissionDeniedError(
        BrokerRefusal("the daemon refuses this user", welcome->status, welcome->message));
  }
  return socket;
}

}  // namespace sluice
