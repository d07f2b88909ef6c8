// SPDX-License-Identifier: Apache-2.0
// The first words with a local broker: Hello and Welcome, which a session of the OpenCL driver and
// a resource connection of libsluice begin with alike. The broker's messages are checked for form.
// Every wait is bounded. Thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "broker/os/local_socket.h"
#include "broker/os/scoped_handle.h"
#include "proto/broker_messages.h"
#include "proto/status_macros.h"

namespace sluice::client {

// How long an answer may take, from when this is made; whatever else comes meanwhile.
class AnswerTime {
 public:
  explicit AnswerTime(int limit_ms) : end_(Clock::now() + std::chrono::milliseconds(limit_ms)) {}
  int left_ms() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now());
    return static_cast<int>(std::max<int64_t>(left.count(), 0));
  }

 private:
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end_;
};

// Receives one message of type T. A message of another type is skipped: it answers an earlier call
// that timed out.
template <typename T>
absl::StatusOr<T> ReceiveFromBroker(int socket, AnswerTime time, std::vector<os::UniqueFd>* fds,
                                    int max_fds) {
  while (true) {
    const int left_ms = time.left_ms();
    if (left_ms == 0) return absl::DeadlineExceededError("no answer, but other messages");
    RETURN_IF_ERROR(os::WaitReadable(socket, left_ms));
    char packet[wire::kMaxBrokerMessageBytes];
    ASSIGN_OR_RETURN(const size_t bytes,
                     os::ReceiveMessage(socket, packet, sizeof(packet), fds, max_fds));
    if (bytes == 0) return absl::AbortedError("the daemon closed the connection");
    T message;
    if (wire::ParseMessage(packet, bytes, &message)) {
      if (!wire::IsTerminated(message.message))
        return absl::InvalidArgumentError("a text without an end from the daemon");
      return message;
    }
    if (wire::PeekMessageType(packet, bytes) == 0)
      return absl::InvalidArgumentError("a broken message from the daemon");
  }
}

// "`what`: the broker's message, or the errno's name".
std::string BrokerRefusal(const char* what, int status, const char* message);

// Connects to the socket at `path` and says Hello with the comma-separated `features`. `fds` gets
// what came with the Welcome: the snapshot. kPermissionDenied: the daemon refuses. All of it takes
// no longer than ConnectLimitMs, or 10 s.
absl::StatusOr<os::UniqueFd> GreetBroker(const std::string& path, const char* features,
                                         wire::Welcome* welcome, std::vector<os::UniqueFd>* fds);

}  // namespace sluice::client
