// SPDX-License-Identifier: Apache-2.0
// The exports of libsluice_remote.so (client_icd/session/transport.h): the driver finds these by
// name.
#include <grpc/support/log.h>

#include <chrono>
#include <cstring>

#include "broker/os/lasting_thread.h"
#include "broker/os/this_process.h"
#include "broker/os/threads.h"
#include "client_icd/remote/grpc_start.h"
#include "client_icd/remote/remote_channel.h"
#include "client_icd/remote/remote_transport.h"

namespace sluice::client {
namespace {

void Say(absl::string_view text, char* said, uint64_t said_bytes) {
  if (said_bytes == 0) return;
  const size_t length = text.size() < said_bytes ? text.size() : said_bytes - 1;
  std::memcpy(said, text.data(), length);
  said[length] = '\0';
}

}  // namespace
}  // namespace sluice::client

extern "C" {

__attribute__((visibility("default"))) sluice::client::Transport* sluice_remote_connect(
    const char* endpoint, bool* refused, char* error, uint64_t error_bytes) {
  const sluice::os::ScopedNoSignals no_signals;
  auto transport =
      sluice::client::RemoteTransport::Connect(endpoint, sluice::client::ConnectTimeout());
  if (transport.ok()) return transport->release();
  *refused = absl::IsResourceExhausted(transport.status());
  sluice::client::Say(transport.status().message(), error, error_bytes);
  return nullptr;
}

__attribute__((visibility("default"))) bool sluice_remote_describe(
    const char* endpoint, uint32_t timeout_ms,
    void (*deliver)(void* to, const char* data, uint64_t bytes), void* to, char* said,
    uint64_t said_bytes) {
  const sluice::os::ScopedNoSignals no_signals;
  std::string version;
  absl::StatusOr<std::string> snapshot;
  sluice::os::RunWhereIoLasts([&] {
    snapshot = sluice::client::DescribePlatforms(endpoint, std::chrono::milliseconds(timeout_ms),
                                                 &version);
  });
  if (!snapshot.ok()) {
    sluice::client::Say(snapshot.status().message(), said, said_bytes);
    return false;
  }
  sluice::client::Say(version, said, said_bytes);
  deliver(to, snapshot->data(), snapshot->size());
  return true;
}

__attribute__((visibility("default"))) const char* sluice_remote_check() {
  return sluice::client::GrpcTrouble();
}

__attribute__((visibility("default"))) void sluice_remote_silence_grpc() {
  // The process belongs to a stranger.
  if (!sluice::client::LogsGrpc()) gpr_set_log_function([](gpr_log_func_args*) {});
}

}  // extern "C"
