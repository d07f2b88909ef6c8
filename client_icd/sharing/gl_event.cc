// SPDX-License-Identifier: Apache-2.0
// cl_khr_gl_event (section 9.5.4).
#include "client_icd/sharing/gl_event.h"

#include <CL/cl_gl.h>

#include <algorithm>
#include <utility>

#include "client_icd/api.h"
#include "client_icd/event.h"
#include "client_icd/sharing/api_rules.h"
#include "client_icd/sharing/gl_share.h"

namespace sluice {
namespace sharing {

cl_event LinkFence(cl_context context_handle, cl_command_type type, FenceWaiters::Fence fence,
                   cl_int* errcode_ret) {
  // CL_INVALID_CONTEXT if context is not a valid context, or was not created from a GL context.
  Context* context = Context::From(context_handle);
  GlShare* share = context == nullptr ? nullptr : static_cast<GlShare*>(context->Interop(Api::kGl));
  if (share == nullptr) return Fail(errcode_ret, CL_INVALID_CONTEXT);
  // CL_INVALID_GL_OBJECT if sync is not the name of a sync object in the GL share group: there is
  // none any more.
  if (share->closed()) return Fail(errcode_ret, CL_INVALID_GL_OBJECT);
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
  return sharing::LinkFence(context, CL_COMMAND_GL_FENCE_SYNC_OBJECT_KHR, std::move(wait),
                            errcode_ret);
}

}  // namespace api
}  // namespace sluice
