// SPDX-License-Identifier: Apache-2.0
//
// One stream of a resource's states. gRPC's thread takes what comes and keeps the latest; whoever
// waits for news sleeps here. No thread of ours.
//
// Owned by the application through sluice_watch. Thread-safe; Close waits until gRPC is done with
// it.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client_icd/libsluice/resource_connection.h"
#include "proto/resources.grpc.pb.h"

namespace sluice {

class ResourceWatch final : public grpc::ClientReadReactor<v1::ResourceState> {
 public:
  // `connection` outlives this.
  ResourceWatch(ResourceConnection* connection, const std::string& capability);
  ~ResourceWatch() override;

  // kDeadlineExceeded: no news in time. kAborted: destroyed, and that was told before.
  absl::StatusOr<v1::ResourceState> Next(uint32_t timeout_ms) ABSL_LOCKS_EXCLUDED(mutex_);

  void OnReadInitialMetadataDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnReadDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnDone(const grpc::Status& status) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  ResourceConnection* const connection_;
  grpc::ClientContext context_;
  v1::WatchResourceRequest request_;
  v1::ResourceState incoming_;  // gRPC's while it reads.

  absl::Mutex mutex_;
  v1::ResourceState latest_ ABSL_GUARDED_BY(mutex_);
  bool news_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status stranger_ ABSL_GUARDED_BY(mutex_);  // Not OK: it is not the daemon that answers.
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace sluice
