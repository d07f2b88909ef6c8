// SPDX-License-Identifier: Apache-2.0
// Memory of the worker as a buffer of ours in the application's share group, imported through
// GL_EXT_memory_object_fd: the GL's end of a device shadow. OpenCL has what GlHolding packs into
// it, without a copy between the processes.
//
// GL thread only, but for its destruction. The memory is the worker's: its bytes may change at any
// time and are data, never structure.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "client_icd/sharing/core/native_object.h"
#include "client_icd/sharing/gl/gl_share.h"

namespace sluice::client::sharing {

class GlShadow {
 public:
  ~GlShadow();

  // Any thread: whether Import is worth trying.
  static bool IsPossible(const GlCaps& caps);

  // Takes the memory over if its device and driver are this context's own; else the error says what
  // differs.
  static absl::StatusOr<std::shared_ptr<GlShadow>> Import(GlContexts& contexts,
                                                          ShadowMemory memory);
  // Any thread: whether ImportSemaphores is worth trying.
  static bool CanSignal(const GlCaps& caps);
  // Takes the semaphores over (GL_EXT_semaphore_fd), of the device and driver that the memory is
  // of.
  absl::Status ImportSemaphores(GlContexts& contexts, ShadowSemaphores semaphores);
  // Behind, or before, what the current context is given. Neither waits.
  cl_int Signal(GlContexts& contexts);
  cl_int Wait(GlContexts& contexts);
  // Signals what the current context waits for, from another one: nobody else will.
  void Unblock(GlContexts& contexts);

  // By whoever needs it no more; at the process's exit earlier, and then once more. The contexts
  // hold it until then: the job that would drop it may find no thread.
  void Drop(GlContexts& contexts);

  GLuint buffer() const { return buffer_; }

 private:
  struct Functions;
  struct SemaphoreFunctions;
  GlShadow();

  GLuint memory_ = 0;
  GLuint buffer_ = 0;
  std::unique_ptr<const SemaphoreFunctions> semaphore_functions_;  // Null: there are none.
  GLuint to_opencl_ = 0;
  GLuint from_opencl_ = 0;
};

}  // namespace sluice::client::sharing
