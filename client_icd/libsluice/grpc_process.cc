// SPDX-License-Identifier: Apache-2.0
#include "client_icd/libsluice/grpc_process.h"

#include <grpc/grpc.h>

#include <atomic>

#include "broker/base/grpc_environment.h"
#include "broker/os/this_process.h"
#include "proto/status_macros.h"

namespace sluice::client {
namespace {

std::atomic<int> claimed_by{0};  // The process that we have used gRPC in.
// The use of the same gRPC by others: the application, or the transport over the network.
std::atomic<bool> runs_at_fork{false};
std::atomic<bool> forked{false};

[[maybe_unused]] const bool watching_forks = [] {
  os::AtFork([] { runs_at_fork.store(grpc_is_initialized() != 0, std::memory_order_relaxed); },
             nullptr,
             [] {
               if (runs_at_fork.load(std::memory_order_relaxed))
                 forked.store(true, std::memory_order_relaxed);
             });
  return true;
}();

}  // namespace

absl::Status ClaimGrpc() {
  const absl::Status of_fork = absl::FailedPreconditionError(
      "this process is a fork of one that has used gRPC, which gRPC does not survive");
  if (forked.load(std::memory_order_relaxed)) return of_fork;
  // As foreign_grpc.cc says of the driver's.
  if (os::InOtherNamespace()) {
    return absl::FailedPreconditionError(
        "this program has loaded libsluice by dlmopen(), and gRPC cannot be in a second namespace");
  }
  const int self = os::ProcessId();
  int before = claimed_by.load(std::memory_order_relaxed);
  if (before == 0) {
    RETURN_IF_ERROR(CheckGrpcEnvironment());
    if (claimed_by.compare_exchange_strong(before, self, std::memory_order_relaxed))
      return absl::OkStatus();
  }
  return before == self ? absl::OkStatus() : of_fork;
}

}  // namespace sluice::client
