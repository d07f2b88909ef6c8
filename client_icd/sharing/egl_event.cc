// SPDX-License-Identifier: Apache-2.0
// cl_khr_egl_event (section 9.17.4).
#include <CL/cl_egl.h>

#include <utility>

#include "client_icd/api.h"
#include "client_icd/sharing/egl_sync.h"
#include "client_icd/sharing/gl_event.h"

namespace sluice::api {

cl_event CL_API_CALL clCreateEventFromEGLSyncKHR(cl_context context, CLeglSyncKHR sync,
                                                 CLeglDisplayKHR display,
                                                 cl_int* errcode_ret) noexcept {
  sharing::FenceWaiters::Fence wait;
  // CL_INVALID_EGL_OBJECT_KHR if sync is not a valid EGLSyncKHR object of type EGL_SYNC_FENCE_KHR
  // created with respect to EGLDisplay display.
  wait.begin = [sync, display](sharing::GlContexts&) {
    return sharing::IsEglFence(display, sync) ? CL_SUCCESS : CL_INVALID_EGL_OBJECT_KHR;
  };
  wait.wait = [sync, display](sharing::GlContexts&, absl::Time deadline) {
    return sharing::WaitForEglFence(display, sync, deadline);
  };
  return sharing::LinkFence(context, CL_COMMAND_EGL_FENCE_SYNC_OBJECT_KHR, std::move(wait),
                            errcode_ret);
}

}  // namespace sluice::api
