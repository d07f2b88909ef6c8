// SPDX-License-Identifier: Apache-2.0
// cl_khr_gl_event (section 9.5.4).
#include "client_icd/sharing/gl/gl_event.h"

#include <CL/cl_gl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "client_icd/base/api.h"
#include "client_icd/objects/event.h"
#include "client_icd/sharing/core/api_rules.h"
#include "client_icd/sharing/gl/gl_share.h"

#ifndef CL_COMMAND_GL_FENCE_SYNC_OBJECT_KHR  // In another file until 2022.
#define CL_COMMAND_GL_FENCE_SYNC_OBJECT_KHR 0x200D
#endif

namespace sluice::client {
namespace sharing {
namespace {

// A fence of ours in the application's context, behind the one that it made there. Made by the
// calling thread, looked at by a waiter.
struct StandIn {
  GLsync sync = nullptr;
  GlShare* share = nullptr;
  bool foreign = false;  // The context that is current is of another share group.

  void Make(GlShare& of) {
    if (!of.IsCurrentHere()) return;
    const GlFunctions& gl = of.gl();
    const GlVersion version =
        GlVersion::Parse(reinterpret_cast<const char*>(gl.GetString(GL_VERSION)));
    if (version.number < (version.es ? 30 : 32)) return;
    share = &of;
    sync = gl.FenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
    gl.Flush();
  }
  void CheckGroup(GlContexts& contexts) {
    foreign = sync != nullptr && contexts.gl().IsSync(sync) != GL_TRUE;
  }
  std::optional<cl_int> Look(GlContexts& contexts, GLsync fence) const {
    std::optional<cl_int> status = contexts.Look(fence);
    const bool usable = sync != nullptr && !foreign;
    if (status == CL_INVALID_GL_OBJECT && usable) status = contexts.Look(sync);
    if (status && usable && !contexts.closed()) contexts.gl().DeleteSync(sync);
    return status;
  }
};

}  // namespace

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
  status = share->waiters().Start(*share, std::move(fence));
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
  auto behind = std::make_shared<sharing::StandIn>();
  // "Creating a linked event object also places a reference on the linked GL sync object", which
  // only a wait does. Where nothing waits, this stands in for a fence that is deleted.
  wait.hold = [behind](sharing::GlShare& share) { behind->Make(share); };
  // CL_INVALID_GL_OBJECT if sync is not the name of a sync object in the GL share group associated
  // with context.
  wait.begin = [fence, behind](sharing::GlContexts& contexts) {
    behind->CheckGroup(contexts);
    if (contexts.gl().IsSync(fence) == GL_TRUE) return CL_SUCCESS;
    if (behind->sync != nullptr && !behind->foreign) contexts.gl().DeleteSync(behind->sync);
    return CL_INVALID_GL_OBJECT;
  };
  wait.look = [fence, behind](sharing::GlContexts& contexts) {
    return behind->Look(contexts, fence);
  };
  wait.wait = [fence](sharing::GlContexts& contexts, absl::Time deadline) {
    return contexts.Wait(fence, deadline);
  };
  const cl_event event = sharing::LinkFence(context, CL_COMMAND_GL_FENCE_SYNC_OBJECT_KHR,
                                            std::move(wait), errcode_ret);
  if (behind->foreign) behind->share->gl().DeleteSync(behind->sync);
  return event;
}

}  // namespace api
}  // namespace sluice::client
