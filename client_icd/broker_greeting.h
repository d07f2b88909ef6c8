// SPDX-License-Identifier: Apache-2.0
// The first words with a local broker: Hello and Welcome, which a session of the OpenCL driver and
// a resource connection of libsluice begin with alike. The broker's messages are checked for form.
// Every wait is bounded. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "broker/broker_messages.h"
#include "broker/os/local_socket.h"
#include "broker/os/scoped_handle.h"
#include "proto/status_macros.h"

namespace sluice {

// Receives one message of type T. A message of another type is skipped: it answers an earlier call
// that timed out.
template <typename T>
absl::StatusOr<T> ReceiveFromBroker(int socket, int timeout_ms, std::vector<UniqueFd>* fds,
                                    int max_fds) {
  while (true) {
    RETURN_IF_ERROR(WaitReadable(socket, timeout_ms));
    char packet[kMaxBrokerMessageBytes];
    ASSIGN_OR_RETURN(const size_t bytes,
                     ReceiveMessage(socket, packet, sizeof(packet), fds, max_fds));
    if (bytes == 0) return absl::AbortedError("the daemon closed the connection");
    T message;
    if (ParseMessage(packet, bytes, &message)) {
      if (!IsTerminated(message.message))
        return absl::InvalidArgumentError("a text without an end from the daemon");
      return message;
    }
    if (PeekMessageType(packet, bytes) == 0)
      return absl::InvalidArgumentError("a broken message from the daemon");
  }
}

// "`what`: the broker's message, or the errno's name".
std::string BrokerRefusal(const char* what, int status, const char* message);

// Connects to the socket at `path` and says Hello with the comma-separated `features`. `fds` gets
// what came with the Welcome: the snapshot. kPermissionDenied: the daemon refuses.
absl::StatusOr<UniqueFd> GreetBroker(const std::string& path, const char* features,
                                     Welcome* welcome, std::vector<UniqueFd>* fds);

}  // namespace sluice
