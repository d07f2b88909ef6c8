// SPDX-License-Identifier: Apache-2.0
#include "client_icd/connect/network_helper.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/os/local_socket.h"
#include "broker/os/shared_memory.h"
#include "client_icd/connect/helper_program.h"
#include "client_icd/session/ring_transport.h"
#include "proto/status_macros.h"

namespace sluice::client {
namespace {

// Beyond what the helper itself waits for: it must load gRPC first.
constexpr int kStartTimeoutMs = 5'000;
constexpr int kHelperConnectTimeoutMs = 70'000;
constexpr int kOfferTimeoutMs = 5'000;
constexpr size_t kMaxHelperSnapshotBytes = size_t{64} << 20;

struct Helper {
  os::UniqueFd socket;
  std::shared_ptr<HelperProcess> process;
};

absl::StatusOr<Helper> Start(std::vector<std::string> arguments) {
  ASSIGN_OR_RETURN(auto ends, os::CreateSocketPair());
  const os::UniqueFd theirs = std::move(ends.second);
  ASSIGN_OR_RETURN(
      std::shared_ptr<HelperProcess> process,
      StartHelperProgram(kNetworkHelper, std::move(arguments), {{theirs.get(), kHelperSocket}}));
  return Helper{std::move(ends.first), std::move(process)};
}

absl::StatusOr<HelperAnswer> ReceiveAnswer(int socket, int timeout_ms,
                                           std::vector<os::UniqueFd>* fds) {
  if (absl::Status there = os::WaitReadable(socket, timeout_ms); !there.ok()) {
    return absl::UnavailableError(
        absl::StrCat("the network helper does not answer within ", timeout_ms, " ms"));
  }
  HelperAnswer answer;
  ASSIGN_OR_RETURN(const size_t bytes, os::ReceiveMessage(socket, &answer, sizeof(answer), fds, 1));
  if (bytes != sizeof(answer) || answer.magic != kHelperMagic) {
    return absl::UnavailableError("the network helper has ended without an answer");
  }
  answer.message[sizeof(answer.message) - 1] = '\0';
  if (answer.status == HelperStatus::kRefused) return absl::ResourceExhaustedError(answer.message);
  if (answer.status != HelperStatus::kOk) return absl::UnavailableError(answer.message);
  return answer;
}

absl::StatusOr<std::string> Describe(const char* endpoint, uint32_t timeout_ms,
                                     std::string* version) {
  ASSIGN_OR_RETURN(const Helper helper, Start({"describe", endpoint, absl::StrCat(timeout_ms)}));
  std::vector<os::UniqueFd> fds;
  const int patience_ms = static_cast<int>(std::min<uint32_t>(timeout_ms, 1'000'000));
  ASSIGN_OR_RETURN(const HelperAnswer answer,
                   ReceiveAnswer(helper.socket.get(), patience_ms + kStartTimeoutMs, &fds));
  *version = answer.message;
  if (fds.size() != 1) return absl::InvalidArgumentError("a description without its snapshot");
  return os::ReadSealedCopy(fds[0].get(), kMaxHelperSnapshotBytes);
}

absl::StatusOr<std::unique_ptr<Transport>> Connect(const char* endpoint) {
  ASSIGN_OR_RETURN(Helper helper, Start({"connect", endpoint}));
  std::vector<os::UniqueFd> fds;
  ASSIGN_OR_RETURN(
      const HelperAnswer answer,
      ReceiveAnswer(helper.socket.get(), kHelperConnectTimeoutMs + kStartTimeoutMs, &fds));
  const auto await_end = [process = std::move(helper.process)] { process->AwaitEnd(); };
  ASSIGN_OR_RETURN(std::unique_ptr<RingTransport> transport,
                   RingTransport::ConnectToHelper(std::move(helper.socket), kOfferTimeoutMs,
                                                  answer.max_in_flight, await_end));
  return transport;
}

void Say(absl::string_view text, char* said, uint64_t said_bytes) {
  if (said_bytes == 0) return;
  const size_t length = std::min<size_t>(text.size(), said_bytes - 1);
  std::memcpy(said, text.data(), length);
  said[length] = '\0';
}

Transport* ConnectAsPlugin(const char* endpoint, bool* refused, char* error, uint64_t error_bytes) {
  auto transport = Connect(endpoint);
  if (transport.ok()) return transport->release();
  *refused = absl::IsResourceExhausted(transport.status());
  Say(transport.status().message(), error, error_bytes);
  return nullptr;
}

bool DescribeAsPlugin(const char* endpoint, uint32_t timeout_ms,
                      void (*deliver)(void* to, const char* data, uint64_t bytes), void* to,
                      char* said, uint64_t said_bytes) {
  std::string version;
  const auto snapshot = Describe(endpoint, timeout_ms, &version);
  Say(snapshot.ok() ? version : snapshot.status().message(), said, said_bytes);
  if (!snapshot.ok()) return false;
  deliver(to, snapshot->data(), snapshot->size());
  return true;
}

}  // namespace

absl::StatusOr<RemoteFunctions> FindNetworkHelper() {
  RETURN_IF_ERROR(FindBesideLibrary(kNetworkHelper).status());
  return RemoteFunctions{&ConnectAsPlugin, &DescribeAsPlugin};
}

}  // namespace sluice::client
