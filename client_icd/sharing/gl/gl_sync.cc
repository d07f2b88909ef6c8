// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/gl/gl_sync.h"

#include <memory>
#include <utility>

#include "client_icd/base/client_log.h"
#include "client_icd/objects/event.h"
#include "client_icd/objects/queue.h"
#include "client_icd/sharing/gl/gl_share.h"

namespace sluice::client::sharing {
namespace {

// The share of a call that would do something; null for one that will be refused or is empty.
GlShare* ShareOfCall(const SyncArguments& arguments) {
  const Queue* queue = Queue::FromHost(arguments.queue);
  if (queue == nullptr || arguments.num_objects == 0) return nullptr;
  return static_cast<GlShare*>(queue->context().Interop(Api::kGl));
}

// A fence of the calling thread's context, waited for and deleted on the share's thread: also if
// the call turns out to have nothing to wait for.
class Fence {
 public:
  Fence(std::shared_ptr<GlShare> share, GLsync sync) : share_(std::move(share)), sync_(sync) {}
  Fence(const Fence&) = delete;
  Fence& operator=(const Fence&) = delete;
  ~Fence() {
    share_->Post([sync = sync_](GlContexts& contexts) { contexts.gl().DeleteSync(sync); });
  }
  cl_int Wait(absl::Time deadline) { return share_->contexts()->Wait(sync_, deadline); }

 private:
  const std::shared_ptr<GlShare> share_;
  const GLsync sync_;
};

// True if the fence, made in the current context of this thread, is known in our share group. Of
// the context that was named that need not be asked on our thread; but it may be gone, and another
// have its handle: that one does not know our fence.
bool IsOurs(GlShare& share, GLsync fence) {
  if (share.HasNamedHandle() && share.gl().IsSync(share.contexts()->mark()) == GL_TRUE) return true;
  return share.Run([fence](GlContexts& contexts) {
    return contexts.gl().IsSync(fence) == GL_TRUE ? CL_SUCCESS : CL_INVALID_GL_OBJECT;
  }) == CL_SUCCESS;
}

// Between glBegin and glEnd, or in a context that is lost or out of memory: nobody would know when
// what GL was told is done. CL_OUT_OF_RESOURCES: section 9.3.6 has no code that says more.
cl_int NoFence() {
  ClientLog(ClientLogLevel::kWarning,
            "OpenGL takes no fence on this thread; is it between glBegin and glEnd?");
  return CL_OUT_OF_RESOURCES;
}

}  // namespace

cl_int AcquireGlObjects(const SyncArguments& arguments) {
  GlShare* share = ShareOfCall(arguments);
  if (share != nullptr && share->closed()) return CL_INVALID_GL_OBJECT;
  if (share == nullptr || !share->IsCurrentHere()) return EnqueueAcquire(Api::kGl, arguments);
  const GlFunctions& gl = share->gl();
  const auto* const text = reinterpret_cast<const char*>(gl.GetString(GL_VERSION));
  if (text == nullptr) return NoFence();
  const GlVersion version = GlVersion::Parse(text);
  // Section 9.5.5 asks for completion; a context without fences can only be finished.
  if (version.number < (version.es ? 30 : 32)) {
    gl.Finish();
    return EnqueueAcquire(Api::kGl, arguments);
  }
  const GLsync fence = gl.FenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
  gl.Flush();
  if (fence == nullptr) return NoFence();
  if (!IsOurs(*share, fence)) {
    // A context of another share group: its commands concern no object of ours.
    gl.DeleteSync(fence);
    return EnqueueAcquire(Api::kGl, arguments);
  }
  SyncSteps steps;
  steps.before = [held = std::make_shared<Fence>(share->shared_from_this(), fence)](
                     absl::Time deadline) { return held->Wait(deadline); };
  return EnqueueAcquire(Api::kGl, arguments, std::move(steps));
}

cl_int ReleaseGlObjects(const SyncArguments& arguments) {
  GlShare* share = ShareOfCall(arguments);
  if (share == nullptr || !share->IsCurrentHere()) return EnqueueRelease(Api::kGl, arguments);
  Queue* queue = Queue::FromHost(arguments.queue);
  cl_event own = nullptr;
  SyncArguments waited = arguments;
  if (waited.event == nullptr) waited.event = &own;
  const cl_int status = EnqueueRelease(Api::kGl, waited);
  if (status != CL_SUCCESS) return status;
  const Ref<Event> released(Event::From(*waited.event));
  if (own != nullptr) released->ReleaseForApp();
  // Section 9.5.5 has the release complete before later GL commands; but the calling thread may be
  // the one that will set a user event which the release waits for.
  if (!released->gates().Open()) return CL_SUCCESS;
  return WaitForRelease(*queue, released.get(), arguments.event);
}

}  // namespace sluice::client::sharing
