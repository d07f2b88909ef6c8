// SPDX-License-Identifier: Apache-2.0
// A device shadow of Direct3D 10 or 11: a texture of ours on the application's device, which the
// worker's driver opens by its NT handle, with a keyed mutex of ours. Of a resource that carries
// the application's keyed mutex, whose key cannot be known, or that was not made to be shared.
//
//   free with key 0                     free with key 1
//        |  Take .. copy .. Give(true)       |
//        +----------- this side ------------>|  the worker takes it with 1 and, when OpenCL has
//        |<----------------------------------+  finished, gives it back with 0
//        |  Take .. copy .. Give(false)
//
// "Really taken": with a bound, and only S_OK counts. A mutex whose holder has died leaves contents
// that nobody knows: the shadow is lost, and with it the memory object. Native thread only but for
// Make.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "broker/os/com_ptr.h"
#include "broker/os/texture_sharing.h"
#include "client_icd/base/client_log.h"
#include "client_icd/sharing/core/native_object.h"

namespace sluice::client::sharing {

// The texture's keyed mutex as this side holds it.
class ShadowMutex {
 public:
  explicit ShadowMutex(std::shared_ptr<os::KeyedMutex> mutex) : mutex_(std::move(mutex)) {}

  // `turn`, here and below: the command's, which may be given up meanwhile (these calls may take
  // the device's lock); null if there is none.
  // CL_OUT_OF_RESOURCES if it is not to be had by then, or never will be.
  cl_int Take(absl::Time deadline, NativeWatch::Turn* turn);
  // To the worker, if the command was not given up, or to ourselves. Returns `status` unless that
  // fails.
  cl_int Give(bool to_worker, cl_int status, NativeWatch::Turn* turn);
  // After an acquire that failed: what was given to the worker, and never taken by it, is taken
  // back.
  void TakeBack(NativeWatch::Turn* turn);

 private:
  const std::shared_ptr<os::KeyedMutex> mutex_;
  bool lost_ = false;
};

// The form in which a texture that was made to be shared is handed over.
absl::StatusOr<ExportedMemory> ExportTexture(IUnknown* texture, bool keyed_mutex);

}  // namespace sluice::client::sharing
