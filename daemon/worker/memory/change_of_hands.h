// SPDX-License-Identifier: Apache-2.0
// Memory that the client's graphics API and the driver use in turn: whether a driver imports
// handles of a kind (cl_khr_external_memory), and what is done when the memory changes hands.
#pragma once

#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <atomic>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "broker/os/texture_sharing.h"
#include "daemon/worker/objects.h"

namespace sluice::worker {

// Kept by the memory object and by commands that are under way. The driver is told by the
// functions; null ones: it works in the host's memory and need not be. Of a texture with a keyed
// mutex that is taken first and given back last, so that the client waits in vain for its key as
// long as OpenCL has the texture. Any thread.
struct ChangeOfHands {
  clEnqueueAcquireExternalMemObjectsKHR_fn acquire = nullptr;
  clEnqueueReleaseExternalMemObjectsKHR_fn release = nullptr;
  std::shared_ptr<os::KeyedMutex> mutex;
  mutable std::atomic<bool> holds_mutex{false};
  mutable std::atomic<bool> driver_has_it{false};  // It was told of an acquire, of no release yet.

  // Before the driver is told of an acquire. The client has given it back before it asks: if this
  // waits, and in the end fails, it is for a client that did not.
  cl_int TakeMutex() const;
  // Tells the driver of a release, if it was told of an acquire and of no release since. Its event
  // is null if there was nothing to tell, or it refused.
  UniqueCl<cl_event> TakeFromDriver(cl_command_queue queue, cl_mem memory) const;

  // After a release, and an acquire that failed. `status` is how that ended; returned if nothing
  // else fails.
  cl_int ReturnMutex(cl_int status) const;

  // An acquire that was accepted, and the release that belongs to it: should that be refused, what
  // the acquire has taken, or takes when it may run, must go back all the same.
  class Taking {
   public:
    // True: the release was refused before, and the caller gives back.
    bool End() {
      absl::MutexLock lock(&mu_);
      ended_ = true;
      return abandoned_;
    }
    // The release was refused. True: the acquire has ended, and the caller gives back.
    bool Abandon() {
      absl::MutexLock lock(&mu_);
      abandoned_ = true;
      return ended_;
    }

   private:
    absl::Mutex mu_;
    bool ended_ ABSL_GUARDED_BY(mu_) = false;
    bool abandoned_ ABSL_GUARDED_BY(mu_) = false;
  };
  // Of the newest acquire. Session thread only.
  mutable std::shared_ptr<Taking> taking;
};

// All that the device's driver needs to be told, if it imports handles of that type; else the
// status names `extension`.
absl::StatusOr<std::shared_ptr<ChangeOfHands>> FindChangeOfHands(
    const DeviceObject& device, cl_external_memory_handle_type_khr type,
    absl::string_view extension);

}  // namespace sluice::worker
