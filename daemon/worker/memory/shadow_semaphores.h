// SPDX-License-Identifier: Apache-2.0
// The two semaphores of a shadow buffer (proto/commands/sharing/shadow.proto): binary, made by
// Vulkan, imported by the driver's OpenCL (cl_khr_external_semaphore_opaque_fd), and by the
// client's graphics API from the descriptors that Export gives.
//
// Owned by the shadow's MemoryObject. Nothing here waits. The client is responsible for the state
// of a semaphore: one that lies about it holds up the work of its own session, whose worker the
// broker ends.
#pragma once

#include <array>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/os/scoped_handle.h"
#include "daemon/helpers/external_memory.h"
#include "daemon/worker/objects.h"

namespace sluice::worker {

class ShadowSemaphores {
 public:
  // In a context of one device. The error says what is missing, for a log.
  static absl::StatusOr<std::unique_ptr<ShadowSemaphores>> Make(
      const ContextObject& context, const os::ExternalMemoryDevice& device);
  ~ShadowSemaphores();
  ShadowSemaphores(const ShadowSemaphores&) = delete;
  ShadowSemaphores& operator=(const ShadowSemaphores&) = delete;

  // New descriptors: the one that the client signals, the one that it waits for.
  absl::StatusOr<std::array<os::UniqueFd, 2>> Export() const;

  // For the driver's queue, without an event.
  cl_int EnqueueWait(cl_command_queue queue) const;
  cl_int EnqueueSignal(cl_command_queue queue) const;

 private:
  struct Functions {
    clCreateSemaphoreWithPropertiesKHR_fn create = nullptr;
    clReleaseSemaphoreKHR_fn release = nullptr;
    clEnqueueWaitSemaphoresKHR_fn wait = nullptr;
    clEnqueueSignalSemaphoresKHR_fn signal = nullptr;
  };
  struct One {
    std::function<absl::StatusOr<os::UniqueFd>()> export_fd;
    cl_semaphore_khr handle = nullptr;
  };
  explicit ShadowSemaphores(const Functions& functions) : functions_(functions) {}
  absl::Status MakeOne(cl_context context, const os::ExternalMemoryDevice& device, One* one);

  const Functions functions_;
  One from_client_;
  One to_client_;
};

// Makes a semaphore in place of Vulkan, and gives a function that exports it. The drivers of test
// machines export none.
using SemaphoreMaker = std::function<absl::StatusOr<std::function<absl::StatusOr<os::UniqueFd>()>>(
    const os::ExternalMemoryDevice& device)>;
void SetSemaphoreMakerForTesting(SemaphoreMaker maker);

}  // namespace sluice::worker
