// SPDX-License-Identifier: Apache-2.0
// cl_khr_egl_event (section 9.17.4).
#include <CL/cl_egl.h>

#include <memory>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "client_icd/base/api.h"
#include "client_icd/sharing/egl/egl_sync.h"
#include "client_icd/sharing/gl/gl_event.h"
#include "client_icd/sharing/gl/gl_share.h"

namespace sluice::client::api {

cl_event CL_API_CALL clCreateEventFromEGLSyncKHR(cl_context context, CLeglSyncKHR sync,
                                                 CLeglDisplayKHR display,
                                                 cl_int* errcode_ret) noexcept {
  sharing::FenceWaiters::Fence wait;
  // "Creating a linked event object also places a reference on the linked EGL sync object", which
  // EGL has no call for. A driver's eglClientWaitSync may use a fence that is destroyed meanwhile
  // after it is freed. So it is used within this call alone: a fence of ours behind it is what is
  // waited for. Where a context of ours cannot be put behind it, the call itself waits for it.
  auto behind = std::make_shared<GLsync>(nullptr);
  wait.own = true;
  // CL_INVALID_EGL_OBJECT_KHR if sync is not a valid EGLSyncKHR object of type EGL_SYNC_FENCE_KHR
  // created with respect to EGLDisplay display.
  wait.begin = [sync, display, behind](sharing::GlContexts& contexts) {
    if (!sharing::IsEglFence(display, sync)) return CL_INVALID_EGL_OBJECT_KHR;
    if (!sharing::FollowEglFence(display, sync)) {
      return sharing::WaitForEglFence(display, sync, absl::Now() + sharing::kGlPatience);
    }
    *behind = contexts.gl().FenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
    contexts.gl().Flush();
    return *behind == nullptr ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
  };
  wait.wait = [behind](sharing::GlContexts& contexts, absl::Time deadline) {
    if (*behind == nullptr) return CL_SUCCESS;
    const cl_int status = contexts.Wait(*behind, deadline);
    // Otherwise GL may not be there any more; the fence goes with our context.
    if (status == CL_SUCCESS) contexts.gl().DeleteSync(*behind);
    return status;
  };
  wait.look = [behind](sharing::GlContexts& contexts) -> std::optional<cl_int> {
    if (*behind == nullptr) return CL_SUCCESS;
    const std::optional<cl_int> status = contexts.Look(*behind);
    if (status == CL_SUCCESS) contexts.gl().DeleteSync(*behind);
    return status;
  };
  return sharing::LinkFence(context, CL_COMMAND_EGL_FENCE_SYNC_OBJECT_KHR, std::move(wait),
                            errcode_ret);
}

}  // namespace sluice::client::api
