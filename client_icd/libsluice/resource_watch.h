// SPDX-License-Identifier: Apache-2.0
//
// One stream of a resource's states: whoever asks gets the latest. GrpcWatch is that of gRPC, whose
// threads take what comes; resource_helper.h has the other. No thread of ours.
//
// Owned by the application through sluice_watch. Thread-safe; the destructor waits until gRPC is
// done with it, a few seconds at most.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client_icd/libsluice/resource_channel.h"
#include "proto/resources.grpc.pb.h"

namespace sluice::client {

// gRPC's status as ours.
absl::Status FromGrpc(const grpc::Status& status);

class ResourceWatch {
 public:
  virtual ~ResourceWatch() = default;

  // kDeadlineExceeded: no news in time. kAborted: destroyed, and that was told before.
  virtual absl::StatusOr<v1::ResourceState> Next(uint32_t timeout_ms) = 0;
  // OK once the daemon has told a state, which the next Next returns; else why it refuses.
  virtual absl::Status WaitForFirst(absl::Duration timeout) = 0;
};

// The daemon's news so far.
class WatchedState {
 protected:
  absl::StatusOr<v1::ResourceState> TakeLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status FirstLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  v1::ResourceState latest_ ABSL_GUARDED_BY(mutex_);
  bool news_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
};

class GrpcWatch final : public ResourceWatch {
 public:
  // `stub` is that of `channel`.
  GrpcWatch(v1::Resources::Stub* stub, std::shared_ptr<const ResourceChannel> channel,
            v1::WatchResourceRequest request);
  ~GrpcWatch() override;

  absl::StatusOr<v1::ResourceState> Next(uint32_t timeout_ms) override;
  absl::Status WaitForFirst(absl::Duration timeout) override;
  void Cancel();  // Ends what waits.

 private:
  class Stream;

  const std::shared_ptr<const ResourceChannel> channel_;
  std::unique_ptr<Stream> stream_;  // Leaked, with its channel, if gRPC does not let go in time.
};

}  // namespace sluice::client
