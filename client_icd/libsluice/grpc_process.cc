// SPDX-License-Identifier: Apache-2.0
#include "client_icd/libsluice/grpc_process.h"

#include <grpc/grpc.h>

#include <atomic>

#include "broker/os/this_process.h"

namespace sluice {
namespace {

std::atomic<int> claimed_by{0};  // The process that we have used gRPC in.
// What the application, or the transport over the network, has done with the same gRPC.
std::atomic<bool> runs_at_fork{false};
std::atomic<bool> forked{false};

[[maybe_unused]] const bool watching_forks = [] {
  AtFork([] { runs_at_fork.store(grpc_is_initialized() != 0, std::memory_order_relaxed); }, nullptr,
         [] {
           if (runs_at_fork.load(std::memory_order_relaxed))
             forked.store(true, std::memory_order_relaxed);
         });
  return true;
}();

}  // namespace

bool ClaimGrpc() {
  if (forked.load(std::memory_order_relaxed)) return false;
  int before = 0;
  const int self = ProcessId();
  return claimed_by.compare_exchange_strong(before, self, std::memory_order_relaxed) ||
         before == self;
}

}  // namespace sluice
