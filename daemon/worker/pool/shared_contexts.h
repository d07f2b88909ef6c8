// SPDX-License-Identifier: Apache-2.0
// The driver's contexts of a pool: one for each set of devices, which the contexts of its sessions
// share. The reason is that kernels of one run beside each other on a GPU and those of two do not.
// Nothing of the driver's tells whose an object in it is: that is what each session's own table of
// objects is for.
//
// They live as long as the pool: a session that comes later finds them made. Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "daemon/worker/cl_handle.h"

namespace sluice::worker {

class SharedContexts {
 public:
  // A context of these devices, with a reference for the caller, and the count of its queues. While
  // one is made, others wait.
  UniqueCl<cl_context> Get(cl_platform_id platform, const std::vector<cl_device_id>& devices,
                           std::shared_ptr<std::atomic<int>>* queues, cl_int* status);

  // "" if the driver still takes commands in each; else what it says. Waits in the driver.
  std::string Examine();

  // DriverQuirks::prints_late: returns when the text of every kernel that has ended is in the
  // process's stdout. Not on a driver's thread (section 5.11, clSetEventCallback: no clFinish), and
  // not with a lock held that the reader of stdout takes, for whom the driver may wait here.
  void WaitForText();

 private:
  struct Shared {
    cl_platform_id platform = nullptr;
    std::vector<cl_device_id> devices;
    UniqueCl<cl_context> context;
    std::shared_ptr<std::atomic<int>> queues = std::make_shared<std::atomic<int>>(0);
    UniqueCl<cl_command_queue> queue;  // No session's: it is idle but for Examine's markers.
  };

  // They stay for ever.
  std::vector<cl_command_queue> Queues() ABSL_LOCKS_EXCLUDED(mu_);

  absl::Mutex mu_;
  std::vector<Shared> all_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice::worker
