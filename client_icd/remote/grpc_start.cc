// SPDX-License-Identifier: Apache-2.0
#include "client_icd/remote/grpc_start.h"

#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "broker/base/grpc_environment.h"
#include "broker/os/descriptor_identity.h"
#include "broker/os/this_process.h"
#include "broker/os/threads.h"
#include "proto/status_macros.h"

namespace sluice::client {
namespace {

// gRPC would take its threads down with the last channel, and start them again with the next: this
// one, which never connects, stays. Atomic, since a leak checker should find it: the compiler drops
// the store into a pointer that nobody reads.
std::atomic<std::shared_ptr<grpc::Channel>*> kept{nullptr};

// As many threads as gRPC starts: its pool, timers, executors, and one to spare for each kind. It
// does not say if it gets none, and waits for them for ever.
int ThreadsOfGrpc() { return 6 + std::min(os::UsableProcessors(), 16); }

// The descriptors that gRPC opens to be there at all (it aborts the process if it cannot), what we
// open beside it, a connection, what finds its address, and one to spare.
constexpr int kDescriptorsOfGrpc = 8;

// OK if this process can have so many descriptors more at once.
absl::Status CheckRoomForDescriptors(int wanted) {
  std::vector<os::UniqueFd> opened;
  for (int count = 0; count < wanted; ++count) {
    opened.push_back(os::OpenSentinel());
    if (os::IsStillThere(os::IdentityOf(opened.back().get()))) continue;
    return absl::ResourceExhaustedError(
        absl::StrCat("gRPC needs ", wanted, " descriptors, and this process can have only ", count,
                     " more: raise its limit on open files (ulimit -n)"));
  }
  return absl::OkStatus();
}

// OK if this process can have so many threads more at once.
absl::Status CheckRoomForThreads(int wanted) {
  struct Gate {
    absl::Mutex mu;
    bool open ABSL_GUARDED_BY(mu) = false;
    int waiting ABSL_GUARDED_BY(mu) = 0;
  };
  const auto gate = std::make_shared<Gate>();
  const auto wait = [gate] {
    absl::MutexLock lock(&gate->mu);
    gate->mu.Await(absl::Condition(&gate->open));
    --gate->waiting;
  };
  int started = 0;
  for (; started < wanted; ++started) {
    {
      absl::MutexLock lock(&gate->mu);
      ++gate->waiting;
    }
    if (os::StartThread("sluice-try", wait)) continue;
    absl::MutexLock lock(&gate->mu);
    --gate->waiting;
    break;
  }
  absl::MutexLock lock(&gate->mu);
  gate->open = true;
  gate->mu.Await(absl::Condition(
      +[](Gate* g) ABSL_EXCLUSIVE_LOCKS_REQUIRED(g->mu) { return g->waiting == 0; }, gate.get()));
  if (started == wanted) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "gRPC needs ", wanted, " threads, and this process can have only ", started,
      " more: raise its limit on address space (ulimit -v) or on processes (ulimit -u)"));
}

// gRPC writes errors on stderr, which is the application's. One that is not a part of this library
// may be the application's too, and is not ours to silence.
void SilenceOwnGrpc() {
  const std::string ours = os::LibraryFileOf(reinterpret_cast<const void*>(&StartGrpc));
  if (os::LibraryFileOf(reinterpret_cast<const void*>(&gpr_set_log_function)) != ours) return;
  if (!LogsGrpc()) gpr_set_log_function([](gpr_log_func_args*) {});
}

}  // namespace

bool LogsGrpc() {
  return os::EnvironmentVariable("GRPC_VERBOSITY").has_value() ||
         os::EnvironmentVariable("SLUICE_LOG") == "debug";
}

absl::Status StartGrpc() {
  static absl::Mutex* const mu = new absl::Mutex;
  if (kept.load(std::memory_order_acquire) != nullptr) return absl::OkStatus();
  absl::MutexLock lock(mu);
  if (kept.load(std::memory_order_relaxed) != nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(CheckGrpcEnvironment());
  RETURN_IF_ERROR(CheckRoomForDescriptors(kDescriptorsOfGrpc));
  RETURN_IF_ERROR(CheckRoomForGrpcThreads());
  SilenceOwnGrpc();
  grpc_init();
  kept.store(new auto(grpc::CreateChannel("127.0.0.1:1", grpc::InsecureChannelCredentials())),
             std::memory_order_release);
  return absl::OkStatus();
}

absl::Status CheckRoomForGrpcThreads() { return CheckRoomForThreads(ThreadsOfGrpc()); }

}  // namespace sluice::client
