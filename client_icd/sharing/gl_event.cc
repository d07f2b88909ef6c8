// SPDX-License-Identifier: Apache-2.0
// Events of fences that are not OpenCL's: cl_khr_gl_event (section 9.5.4) and cl_khr_egl_event
// (section 9.17.4). The event is one of ours that a waiter ends; queues wait for it as for a user
// event.
#include <CL/cl_egl.h>
#include <CL/cl_gl.h>

#include <algorithm>
#include <utility>

#include "client_icd/api.h"
#include "client_icd/event.h"
#include "client_icd/sharing/api_rules.h"
#include "client_icd/sharing/egl_sync.h"
#include "client_icd/sharing/fence_waiters.h"
#include "client_icd/sharing/gl_share.h"

namespace sluice {
namespace sharing {
namespace {

// "The command associated with the linked sync object has not completed" until `fence` has: the
// event then ends, with an error if the wait failed.
cl_event Link(cl_context context_handle, cl_command_type type, FenceWaiters::Fence fence,
              cl_int* errcode_ret) {
  // CL_INVALID_CONTEXT if context is not a valid context, or was not created from a GL context.
  Context* context = Context::From(context_handle);
  GlShare* share = context == nullptr ? nullptr : static_cast<GlShare*>(context->Interop(Api::kGl));
  if (share == nullptr) return Fail(errcode_ret, CL_INVALID_CONTEXT);
  Ref<Event> event;
  cl_int status = MakeLinkedEvent(context, type, &event);
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  fence.done = [event](cl_int ended) { EndUserEvent(event.get(), std::min(ended, CL_COMPLETE)); };
  status = share->waiters().Start(std::move(fence));
  if (status != CL_SUCCESS) {
    EndUserEvent(event.get(), status);
    return Fail(errcode_ret, status);
  }
  Succeed(errcode_ret);
  return event.Detach()->handle();
}

}  // namespace
}  // namespace sharing

namespace api {

cl_event CL_API_CALL clCreateEventFromGLsyncKHR(cl_context context, cl_GLsync sync,
                                                cl_int* errcode_ret) noexcept {
  const GLsync fence = reinterpret_cast<GLsync>(sync);
  sharing::FenceWaiters::Fence wait;
  // CL_INVALID_GL_OBJECT if sync is not the name of a sync object in the GL share group associated
  // with context.
  wait.begin = [fence](sharing::GlContexts& contexts) {
    return contexts.gl().IsSync(fence) == GL_TRUE ? CL_SUCCESS : CL_INVALID_GL_OBJECT;
  };
  wait.wait = [fence](sharing::GlContexts& contexts, absl::Time deadline) {
    return contexts.Wait(fence, deadline);
  };
  return sharing::Link(context, CL_COMMAND_GL_FENCE_SYNC_OBJECT_KHR, std::move(wait), errcode_ret);
}

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
  return sharing::Link(context, CL_COMMAND_EGL_FENCE_SYNC_OBJECT_KHR, std::move(wait), errcode_ret);
}

}  // namespace api
}  // namespace sluice
