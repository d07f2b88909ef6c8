// SPDX-License-Identifier: Apache-2.0
// A place in the application's GL share group: a thread of ours and, current on it, a context of
// ours. Everything that is done to the application's GL objects is done there, so that the
// application's current context, bindings and errors are never touched.
//
// GlShare is what others hold: OpenCL contexts made for GL, memory objects made from GL objects.
// Any thread. GlContexts is what lives on the thread, given to the jobs that run there.
//
// An object of the application is held by a binding point of ours, never by its name, which the
// application may delete and use again. A texture is held by a texture unit (of each target there
// is one per unit; when a context's units are taken another context is made). A buffer and a
// renderbuffer are held by a vertex array or framebuffer object (gl_object.h). An object that is
// bound in a context outlives its name.
//
// Nothing waits without a bound: GPU work is waited for by fences, with a deadline.
#pragma once

#include <CL/cl.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "broker/os/thread_checker.h"
#include "client_icd/sharing/core/native_thread.h"
#include "client_icd/sharing/gl/gl_api.h"
#include "client_icd/sharing/gl/gl_binding.h"

namespace sluice::client::sharing {

// With GL commands of the application, a fence or a copy: one that draws in software may need it.
constexpr absl::Duration kGlPatience = absl::Seconds(30);

class FenceWaiters;
class GlCopier;
class GlShadow;

// The abilities of the contexts beyond the least; constant.
struct GlCaps {
  GlVersion version;
  bool core_profile = false;
  bool egl_image_storage = false;
  bool texture_buffer = false;
  bool texture_buffer_range = false;
  bool egl_image = false;
  bool memory_object = false;
  bool memory_object_fd = false;
  bool semaphore_fd = false;
  // A texture's bytes lie in the order of its internal format's name, whatever it was made from.
  // Other drivers may keep what came as GL_BGRA in that order.
  bool texels_as_named = false;
  bool reset_status = false;
  // A new context is first current when the GPU has done what it was given: what
  // may come behind a long drawing has its context before.
  bool new_contexts_wait = false;
  GLint texture_units = 0;  // Of one context, but for the scratch unit.
};

using GlUuid = std::array<uint8_t, 16>;

// GL thread only.
class GlContexts {
 public:
  // Owns a texture unit's binding of one target; empty once given back.
  struct Unit {
    size_t context = 0;
    GLuint unit = 0;
    GLenum target = 0;
  };

  // With a first context that is current on this thread, in the share group of the one named.
  // NotFoundError if a function is missing; else as GlBinding::Init.
  static absl::StatusOr<std::unique_ptr<GlContexts>> Make(std::unique_ptr<GlBinding> binding);
  ~GlContexts();

  const GlFunctions& gl() const { return gl_; }
  const GlCaps& caps() const { return caps_; }
  const GlBinding& binding() const { return *binding_; }
  // Any thread: a fence of our own, which the contexts of the share group know and no others.
  GLsync mark() const { return mark_; }

  // Makes the context current, if it is not. The first one holds everything but textures.
  bool Use(size_t context);

  // Makes another context than the current one current; one more is made if there is none.
  bool UseAnother();
  // A free unit of that target, active in its context, which is current. Null if no further context
  // can be made.
  std::optional<Unit> TakeUnit(GLenum target);
  // The same, later.
  bool UseUnit(const Unit& unit);
  // The unit that nobody owns, in the current context.
  void UseScratchUnit() {
    gl_.ActiveTexture(GL_TEXTURE0 + static_cast<GLuint>(caps_.texture_units));
  }
  // Binds nothing to it and gives it back.
  void ReturnUnit(const Unit& unit);

  // A buffer of at least that size for bytes under way, the same for every job. 0 if there is none.
  GLuint StagingBuffer(size_t bytes);

  // Made with the first call; null if the GL has no compute shaders.
  GlCopier* copier();

  // The application closes its display: destroys the contexts, and all that is asked of this
  // afterwards fails, with CL_INVALID_GL_OBJECT where it has a code. `close` has that done
  // (GlBinding::WhenDisplayCloses).
  void Close();
  void WhenDisplayCloses(std::function<void()> close) {
    binding_->WhenDisplayCloses(std::move(close));
  }
  // Any thread.
  bool closed() const { return closed_.load() || binding_->DisplayIsGone(); }

  // The shadows that are not dropped yet (gl_shadow.h).
  absl::flat_hash_map<GlShadow*, std::shared_ptr<GlShadow>>& shadows() {
    thread_.Assert();
    return shadows_;
  }
  void DropShadows();

  // Waits for what the current context was given. CL_OUT_OF_RESOURCES when late or reset.
  cl_int Finish(absl::Time deadline);
  // Waits for a fence of the share group, and keeps it.
  cl_int Wait(GLsync sync, absl::Time deadline);
  // The same without waiting: nothing if it is not signalled, CL_INVALID_GL_OBJECT if there is no
  // such fence any more.
  std::optional<cl_int> Look(GLsync sync);
  // GL's error since the last look: CL_SUCCESS, CL_OUT_OF_RESOURCES, or `otherwise`.
  cl_int TakeError(cl_int otherwise);

  // The devices that the context runs on (GL_EXT_memory_object); empty if it does not say.
  std::vector<GlUuid> DeviceUuids();

 private:
  explicit GlContexts(std::unique_ptr<GlBinding> binding);
  void ReadCaps();
  bool AddContext();
  bool HasExtension(const char* name);
  void Prepare();
  cl_int CheckReset();

  os::ThreadChecker thread_;
  const std::unique_ptr<GlBinding> binding_;
  std::vector<std::unique_ptr<GlNativeContext>> contexts_;
  size_t current_ = 0;
  GlFunctions gl_;
  GlCaps caps_;
  // By target: which units of all contexts, one after the other, are taken.
  absl::flat_hash_map<GLenum, std::vector<bool>> taken_;
  GLsync mark_ = nullptr;  // Constant once made.
  GLuint staging_buffer_ = 0;
  size_t staging_bytes_ = 0;
  std::optional<std::unique_ptr<GlCopier>> copier_;
  absl::flat_hash_map<GlShadow*, std::shared_ptr<GlShadow>> shadows_;
  std::atomic<bool> closed_{false};
};

// Runs the job on the thread with that id, which nobody posts to any more, and waits for it unless
// that is this very thread. False in a forked child, where it does not run.
bool RunLast(NativeThread& thread, std::thread::id id, std::function<void()> job);

// A thread for GL, which is left alone from the process's exit on (exit_gate.h).
class GlThread final : public NativeThread {
 public:
  explicit GlThread(const char* name = "sluice-gl") : NativeThread(name) {}
  ~GlThread() override;
  bool Post(JobThread::Job job) override;
};

// Thread-safe.
class GlShare : public std::enable_shared_from_this<GlShare> {
 public:
  using Job = std::function<cl_int(GlContexts&)>;

  // The codes of section 9.3.4: CL_INVALID_GL_SHAREGROUP_REFERENCE_KHR, or CL_INVALID_OPERATION if
  // the process has no such binding. The reason is logged.
  static cl_int Open(const GlContextRef& ref, std::shared_ptr<GlShare>* out);
  // Waits until our contexts are gone, but on the thread itself: the application may destroy its
  // display next. Our objects in the share group, a buffer, a fence and up to six programs, go with
  // them. If they cannot be made current any more (their display is gone), this is a forked child,
  // or the process exits, our part stays for as long as the share group does.
  ~GlShare();

  NativeThread& thread() { return thread_; }

  // Runs on the thread, and waits for it. CL_OUT_OF_RESOURCES if the thread does not get to its end
  // in time: what the job uses must live as long as the job. CL_INVALID_GL_OBJECT if it does not
  // run, because the application has closed its display.
  cl_int Run(Job job);
  // Runs it there, some time; or not, for the same reason.
  void Post(std::function<void(GlContexts&)> job);
  // Of the thread's own jobs, which the sharing core posts.
  GlContexts* contexts() const { return state_->contexts.get(); }

  // The application has closed its display: nothing can be shared any more.
  bool closed() const { return state_->contexts->closed(); }

  // A context of the same binding is current on the calling thread.
  bool IsCurrentHere() const { return binding_->IsCurrentHere(); }
  // That context has the handle of the one that the application named.
  bool HasNamedHandle() const { return binding_->HasNamedHandle(); }
  // For fences of the application. Made with the first.
  FenceWaiters& waiters();
  bool AwaitsFences();
  // The functions and abilities of a context made like the application's.
  const GlFunctions& gl() const { return state_->contexts->gl(); }
  const GlCaps& caps() const { return state_->contexts->caps(); }

 private:
  // Outlives the handle by the jobs that were posted.
  struct State {
    std::unique_ptr<GlContexts> contexts;  // Constant once Open has returned.
    std::thread::id thread;                // As contexts.
  };
  GlShare();

  std::shared_ptr<State> state_ = std::make_shared<State>();
  const GlBinding* binding_ = nullptr;  // Of contexts.
  GlThread thread_;
  absl::Mutex mu_;
  std::unique_ptr<FenceWaiters> waiters_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice::client::sharing
