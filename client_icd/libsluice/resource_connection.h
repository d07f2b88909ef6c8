// SPDX-License-Identifier: Apache-2.0
//
// One connection to the daemon's Resources service: the conversation with the broker, the gRPC
// channel (or a process that has it), and the handle channel beside it. All that comes from the
// daemon is checked for form and, where memory is mapped, for seals.
//
// Owned by the application through sluice_connection. Thread-safe. Calls are bounded in time;
// gRPC's deadline is only a backstop for a daemon that hangs. An acquire that it cuts off is
// withdrawn, and released in case it was granted.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "broker/os/scoped_handle.h"
#include "broker/os/this_process.h"
#include "client_icd/libsluice/resource_channel.h"
#include "client_icd/libsluice/resource_helper.h"
#include "client_icd/libsluice/resource_watch.h"
#include "proto/resource_messages.h"
#include "proto/resources.grpc.pb.h"

namespace sluice::client {

struct ExportedHandle {
  wire::ResourceHandle message;
  std::vector<os::UniqueFd> fds;
};

class ResourceConnection {
 public:
  // kNotFound: nobody answers there, or the daemon has no such service.
  static absl::StatusOr<std::unique_ptr<ResourceConnection>> Connect(const std::string& path);
  ~ResourceConnection();

  absl::StatusOr<v1::CreateResourceReply> Create(const v1::CreateResourceRequest& request);
  absl::StatusOr<v1::CreateResourceReply> Import(v1::ImportResourceRequest request, int fd);
  absl::StatusOr<ExportedHandle> Export(const std::string& capability, v1::ResourceAccess access);
  // `hold_id` gets the name that it chose.
  absl::StatusOr<v1::AcquireResourceReply> Acquire(v1::AcquireResourceRequest request,
                                                   uint64_t* hold_id);
  absl::Status Release(const v1::ReleaseResourceRequest& request);
  absl::Status Destroy(const std::string& capability);
  absl::StatusOr<v1::ResourceDescription> Describe(const std::string& capability);

  // Once the daemon has told the first state, or why it tells none. This outlives the watch.
  absl::StatusOr<std::unique_ptr<ResourceWatch>> Watch(const std::string& capability);
  // kUnavailable in a child of the process that made it.
  absl::Status CheckProcess() const;

 private:
  ResourceConnection(os::UniqueFd broker, os::UniqueFd channel)
      : broker_(std::move(broker)), channel_(std::move(channel)) {}

  // One unary call, given up after `patience`. `name` is the method's.
  template <typename Request, typename Reply>
  absl::Status Call(grpc::Status (v1::Resources::Stub::*method)(grpc::ClientContext*,
                                                                const Request&, Reply*),
                    const char* name, const Request& request, Reply* reply,
                    std::chrono::milliseconds patience);
  void ReleaseUnheard(uint64_t hold_id);
  absl::StatusOr<ExportedHandle> ReceiveHandle(uint64_t token)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(channel_mutex_);

  // Constant after Connect.
  const int pid_ = os::ProcessId();
  os::UniqueFd broker_;  // Held open: its end is the end of everything.
  os::UniqueFd channel_;
  std::unique_ptr<ResourceHelper> helper_;  // In place of the next two, where gRPC cannot be.
  std::shared_ptr<const ResourceChannel> transport_;
  std::unique_ptr<v1::Resources::Stub> stub_;

  std::atomic<bool> has_watched_{false};
  std::atomic<uint64_t> next_token_{1};
  std::atomic<uint64_t> next_hold_{1};
  absl::Mutex channel_mutex_;  // Held from asking for a handle until it is here.
};

}  // namespace sluice::client
