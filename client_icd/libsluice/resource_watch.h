// SPDX-License-Identifier: Apache-2.0
//
// One stream of a resource's states: whoever asks gets the latest. GrpcWatch is that of gRPC, whose
// threads take what comes; resource_helper.h has the other. No thread of ours.
//
// Owned by the application through sluice_watch. Thread-safe; the destructor waits until gRPC is
// done with it.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client_icd/libsluice/resource_channel.h"
#include "proto/resources.grpc.pb.h"

namespace sluice {

// gRPC's status as ours.
absl::Status FromGrpc(const grpc::Status& status);

class ResourceWatch {
 public:
  virtual ~ResourceWatch() = default;

  // kDeadlineExceeded: no news in time. kAborted: destroyed, and that was told before.
  virtual absl::StatusOr<v1::ResourceState> Next(uint32_t timeout_ms) = 0;
  // OK once the daemon has told a state, which the next Next returns; else why it refuses.
  virtual absl::Status WaitForFirst(absl::Duration timeout) = 0;

 protected:
  absl::StatusOr<v1::ResourceState> TakeLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status FirstLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  v1::ResourceState latest_ ABSL_GUARDED_BY(mutex_);
  bool news_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
};

class GrpcWatch final : public ResourceWatch, public grpc::ClientReadReactor<v1::ResourceState> {
 public:
  // Both outlive this.
  GrpcWatch(v1::Resources::Stub* stub, const ResourceChannel* channel,
            v1::WatchResourceRequest request);
  ~GrpcWatch() override;

  absl::StatusOr<v1::ResourceState> Next(uint32_t timeout_ms) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status WaitForFirst(absl::Duration timeout) override ABSL_LOCKS_EXCLUDED(mutex_);
  void Cancel();  // Ends what waits.

  void OnReadInitialMetadataDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnReadDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnDone(const grpc::Status& status) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void WaitForNewsLocked(absl::Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ResourceChannel* const channel_;
  grpc::ClientContext context_;
  const v1::WatchResourceRequest request_;
  v1::ResourceState incoming_;                     // gRPC's while it reads.
  grpc::Status stranger_ ABSL_GUARDED_BY(mutex_);  // Not OK: it is not the daemon that answers.
};

}  // namespace sluice
