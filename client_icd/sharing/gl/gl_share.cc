// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/gl/gl_share.h"

#include <CL/cl_gl.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "client_icd/base/client_log.h"
#include "client_icd/sharing/core/exit_gate.h"
#include "client_icd/sharing/gl/fence_waiters.h"
#include "client_icd/sharing/gl/gl_copy.h"
#include "client_icd/sharing/gl/gl_quirks.h"
#include "client_icd/sharing/gl/gl_shadow.h"

namespace sluice::client::sharing {
namespace {

// Making a context, describing an object: what an entry point waits for, an acquire before it in
// line.
constexpr absl::Duration kRunTimeout = absl::Seconds(40);  // Longer than kGlPatience.
// GL_EXT_memory_object, whose tokens the core headers lack.
constexpr GLenum kNumDeviceUuids = 0x9596;
constexpr GLenum kDeviceUuid = 0x9597;

// More units of one context than this are not needed for anything.
constexpr GLint kMaxUnits = 1024;
constexpr size_t kMaxContexts = 64;

}  // namespace

GlVersion GlVersion::Parse(const char* text) {
  constexpr std::string_view kEs = "OpenGL ES ";
  GlVersion version;
  std::string_view left = text == nullptr ? std::string_view() : std::string_view(text);
  if (left.substr(0, kEs.size()) == kEs) {
    version.es = true;
    left.remove_prefix(kEs.size());
  }
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (left.size() >= 3 && digit(left[0]) && left[1] == '.' && digit(left[2])) {
    version.number = (left[0] - '0') * 10 + (left[2] - '0');
  }
  return version;
}

GlVersion CurrentVersion(const std::function<void*(const char*)>& lookup) {
  const auto get_string = reinterpret_cast<PFNGLGETSTRINGPROC>(lookup("glGetString"));
  if (get_string == nullptr) return {};
  return GlVersion::Parse(reinterpret_cast<const char*>(get_string(GL_VERSION)));
}

absl::StatusOr<std::unique_ptr<GlContexts>> GlContexts::Make(std::unique_ptr<GlBinding> binding) {
  const absl::Status ready = binding->Init();
  if (!ready.ok()) return ready;
  std::unique_ptr<GlContexts> made(new GlContexts(std::move(binding)));
  absl::StatusOr<std::unique_ptr<GlNativeContext>> first = made->binding_->CreateContext();
  if (!first.ok()) return first.status();
  made->contexts_.push_back(*std::move(first));
  absl::StatusOr<GlFunctions> gl =
      LoadGlFunctions([&made](const char* name) { return made->binding_->Lookup(name); });
  if (!gl.ok()) return gl.status();
  made->gl_ = *gl;
  made->ReadCaps();
  made->Prepare();
  made->mark_ = made->gl_.FenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
  made->gl_.Flush();
  return made;
}

GlContexts::GlContexts(std::unique_ptr<GlBinding> binding) : binding_(std::move(binding)) {}

GlContexts::~GlContexts() {
  Close();
  binding_->LeaveThread();
}

void GlContexts::Close() {
  // The contexts take what was bound in them along; these would stay with the application's.
  if (!closed() && Use(0)) {
    if (staging_buffer_ != 0) gl_.DeleteBuffers(1, &staging_buffer_);
    gl_.DeleteSync(mark_);
    if (copier_.has_value() && *copier_ != nullptr) (*copier_)->DeletePrograms();
  }
  closed_.store(true);
  shadows_.clear();
  contexts_.clear();
}

bool GlContexts::HasExtension(const char* name) {
  GLint count = 0;
  gl_.GetIntegerv(GL_NUM_EXTENSIONS, &count);
  for (GLint i = 0; i < count; ++i) {
    const GLubyte* one = gl_.GetStringi(GL_EXTENSIONS, static_cast<GLuint>(i));
    if (one != nullptr && std::string_view(reinterpret_cast<const char*>(one)) == name) return true;
  }
  return false;
}

void GlContexts::ReadCaps() {
  caps_.version = GlVersion::Parse(reinterpret_cast<const char*>(gl_.GetString(GL_VERSION)));
  const bool es = caps_.version.es;
  const int number = caps_.version.number;
  if (!es) {
    GLint profile = 0;
    gl_.GetIntegerv(GL_CONTEXT_PROFILE_MASK, &profile);
    caps_.core_profile = (profile & GL_CONTEXT_CORE_PROFILE_BIT) != 0;
  }
  caps_.egl_image_storage =
      HasExtension("GL_EXT_EGL_image_storage") && gl_.EGLImageTargetTexStorageEXT != nullptr;
  caps_.texture_buffer = !es || number >= 32;
  caps_.texture_buffer_range = number >= (es ? 32 : 43);
  const auto* vendor = reinterpret_cast<const char*>(gl_.GetString(GL_VENDOR));
  const GlQuirks quirks = GlQuirksOf(vendor == nullptr ? "" : vendor);
  caps_.texels_as_named = quirks.texels_as_named;
  caps_.new_contexts_wait = quirks.new_contexts_wait;
  caps_.egl_image = !quirks.egl_images_differ && HasExtension("GL_OES_EGL_image") &&
                    gl_.EGLImageTargetTexture2DOES != nullptr;
  caps_.memory_object =
      HasExtension("GL_EXT_memory_object") && gl_.GetUnsignedBytei_vEXT != nullptr;
  caps_.memory_object_fd = caps_.memory_object && binding_->ImportsDescriptors() &&
                           HasExtension("GL_EXT_memory_object_fd") &&
                           gl_.GetUnsignedBytevEXT != nullptr;
  caps_.semaphore_fd = binding_->ImportsDescriptors() && HasExtension("GL_EXT_semaphore") &&
                       HasExtension("GL_EXT_semaphore_fd");
  caps_.reset_status = gl_.GetGraphicsResetStatus != nullptr && number >= (es ? 32 : 45);
  gl_.GetIntegerv(GL_MAX_COMBINED_TEXTURE_IMAGE_UNITS, &caps_.texture_units);
  caps_.texture_units = std::clamp(caps_.texture_units - 1, 1, kMaxUnits);
}

// Of the current context: rows are tight wherever it packs or unpacks, and what it reads of signed
// normalised formats is not cut off below zero.
void GlContexts::Prepare() {
  if (!caps_.version.es && gl_.ClampColor != nullptr) {
    gl_.ClampColor(GL_CLAMP_READ_COLOR, GL_FALSE);
  }
  gl_.PixelStorei(GL_PACK_ALIGNMENT, 1);
  gl_.PixelStorei(GL_UNPACK_ALIGNMENT, 1);
}

bool GlContexts::Use(size_t context) {
  thread_.Assert();
  if (contexts_.empty()) return false;
  if (context == current_) return true;
  if (!contexts_[context]->MakeCurrent()) return false;
  current_ = context;
  return true;
}

// Makes one more, the current one on success.
bool GlContexts::AddContext() {
  absl::StatusOr<std::unique_ptr<GlNativeContext>> made = binding_->CreateContext();
  if (!made.ok()) {
    contexts_[current_]->MakeCurrent();
    return false;
  }
  contexts_.push_back(*std::move(made));
  current_ = contexts_.size() - 1;
  Prepare();
  return true;
}

bool GlContexts::UseAnother() {
  thread_.Assert();
  if (contexts_.size() == 1) return AddContext();
  return Use(current_ == 0 ? 1 : 0);
}

std::optional<GlContexts::Unit> GlContexts::TakeUnit(GLenum target) {
  thread_.Assert();
  std::vector<bool>& taken = taken_[target];
  const size_t units = static_cast<size_t>(caps_.texture_units);
  size_t index = std::find(taken.begin(), taken.end(), false) - taken.begin();
  if (index == taken.size()) {
    const size_t context = taken.size() / units;
    if (context == contexts_.size()) {
      if (context == kMaxContexts) return std::nullopt;
      if (!AddContext()) return std::nullopt;
    }
    taken.resize(taken.size() + units, false);
  }
  const Unit unit = {index / units, static_cast<GLuint>(index % units), target};
  if (!UseUnit(unit)) return std::nullopt;
  taken[index] = true;
  return unit;
}

bool GlContexts::UseUnit(const Unit& unit) {
  thread_.Assert();
  if (!Use(unit.context)) return false;
  gl_.ActiveTexture(GL_TEXTURE0 + unit.unit);
  return true;
}

void GlContexts::ReturnUnit(const Unit& unit) {
  thread_.Assert();
  if (UseUnit(unit)) gl_.BindTexture(unit.target, 0);
  taken_[unit.target][unit.context * static_cast<size_t>(caps_.texture_units) + unit.unit] = false;
}

GLuint GlContexts::StagingBuffer(size_t bytes) {
  thread_.Assert();
  if (staging_buffer_ == 0) gl_.GenBuffers(1, &staging_buffer_);
  if (bytes <= staging_bytes_) return staging_buffer_;
  gl_.BindBuffer(GL_COPY_WRITE_BUFFER, staging_buffer_);
  gl_.BufferData(GL_COPY_WRITE_BUFFER, static_cast<GLsizeiptr>(bytes), nullptr, GL_STREAM_COPY);
  gl_.BindBuffer(GL_COPY_WRITE_BUFFER, 0);
  staging_bytes_ = TakeError(CL_OUT_OF_RESOURCES) == CL_SUCCESS ? bytes : 0;
  return staging_bytes_ == 0 ? 0 : staging_buffer_;
}

GlCopier* GlContexts::copier() {
  thread_.Assert();
  if (!copier_) copier_ = GlCopier::Make(*this);
  return copier_->get();
}

void GlContexts::DropShadows() {
  while (!shadows_.empty()) shadows_.begin()->second->Drop(*this);
}

cl_int GlContexts::Finish(absl::Time deadline) {
  thread_.Assert();
  if (closed()) return CL_INVALID_GL_OBJECT;
  GLsync sync = gl_.FenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
  if (sync == nullptr) return CL_OUT_OF_RESOURCES;
  const cl_int status = Wait(sync, deadline);
  gl_.DeleteSync(sync);
  return status;
}

cl_int GlContexts::Wait(GLsync sync, absl::Time deadline) {
  thread_.Assert();
  if (closed()) return CL_INVALID_GL_OBJECT;
  const int64_t left = std::max<int64_t>(absl::ToInt64Nanoseconds(deadline - absl::Now()), 0);
  const GLenum result =
      gl_.ClientWaitSync(sync, GL_SYNC_FLUSH_COMMANDS_BIT, static_cast<GLuint64>(left));
  if (result == GL_TIMEOUT_EXPIRED) {
    ClientLog(ClientLogLevel::kWarning, "OpenGL did not finish in time");
    return CL_OUT_OF_RESOURCES;
  }
  if (ExitGate::OfProcess().given_up()) return CL_OUT_OF_RESOURCES;  // No call into GL any more.
  if (closed()) return CL_INVALID_GL_OBJECT;  // Meanwhile, without waiting for us any longer.
  if (result == GL_WAIT_FAILED) return TakeError(CL_OUT_OF_RESOURCES);
  return CheckReset();
}

std::optional<cl_int> GlContexts::Look(GLsync sync) {
  thread_.Assert();
  if (closed()) return CL_INVALID_GL_OBJECT;
  // Not glClientWaitSync: where GL is promised no wrong call, a fence that is deleted at this
  // moment is one, and a driver may not look then.
  GLint status = 0;
  gl_.GetSynciv(sync, GL_SYNC_STATUS, 1, nullptr, &status);
  if (status == GL_UNSIGNALED) return std::nullopt;
  if (status == GL_SIGNALED) return CheckReset();
  const cl_int failed = TakeError(CL_INVALID_GL_OBJECT);
  return failed == CL_SUCCESS ? CL_INVALID_GL_OBJECT : failed;
}

cl_int GlContexts::CheckReset() {
  if (caps_.reset_status && gl_.GetGraphicsResetStatus() != GL_NO_ERROR) {
    ClientLog(ClientLogLevel::kError, "the OpenGL context was reset");
    return CL_OUT_OF_RESOURCES;
  }
  return CL_SUCCESS;
}

cl_int GlContexts::TakeError(cl_int otherwise) {
  thread_.Assert();
  cl_int status = CL_SUCCESS;
  // A lost context may report errors without end.
  for (int i = 0; i < 16; ++i) {
    const GLenum error = gl_.GetError();
    if (error == GL_NO_ERROR) break;
    if (status != CL_SUCCESS) continue;
    status =
        error == GL_OUT_OF_MEMORY || error == GL_CONTEXT_LOST ? CL_OUT_OF_RESOURCES : otherwise;
  }
  return status;
}

std::vector<GlUuid> GlContexts::DeviceUuids() {
  thread_.Assert();
  std::vector<GlUuid> uuids;
  if (!caps_.memory_object) return uuids;
  GLint count = 0;
  gl_.GetIntegerv(kNumDeviceUuids, &count);
  for (GLint i = 0; i < std::min(count, 64); ++i) {
    GlUuid uuid = {};
    gl_.GetUnsignedBytei_vEXT(kDeviceUuid, static_cast<GLuint>(i), uuid.data());
    uuids.push_back(uuid);
  }
  if (TakeError(CL_OUT_OF_RESOURCES) != CL_SUCCESS) uuids.clear();
  return uuids;
}

bool RunLast(NativeThread& thread, std::thread::id id, std::function<void()> job) {
  auto done = std::make_shared<absl::Notification>();
  const bool posted = thread.Post([job = std::move(job), done] {
    job();
    done->Notify();
  });
  if (posted && id != std::this_thread::get_id() &&
      !done->WaitForNotificationWithTimeout(kRunTimeout)) {
    ClientLog(ClientLogLevel::kError, "OpenGL does not destroy a context in time");
  }
  return posted;
}

// From the exit on it has not left GL (RunLast), which frees what it keeps for a thread at the end
// of that thread and, in the exit's handlers, for all. Both at once ended programs in a double
// free.
GlThread::~GlThread() {
  ExitGate& gate = ExitGate::OfProcess();
  gate.Enter() ? gate.Leave() : LeaveRunning();
}

bool GlThread::Post(JobThread::Job job) {
  ExitGate& gate = ExitGate::OfProcess();
  if (!gate.Enter()) return false;
  // For as long as the job is there: one that could not be posted may run later all the same.
  const std::shared_ptr<void> inside(nullptr, [&gate](void*) { gate.Leave(); });
  return NativeThread::Post([job = std::move(job), inside] { job(); });
}

GlShare::GlShare() = default;

cl_int GlShare::Open(const GlContextRef& ref, std::shared_ptr<GlShare>* out) {
  struct Opening {
    std::unique_ptr<GlBinding> binding;
    absl::Notification done;
    absl::Status status;
  };
  const auto refused = [](const absl::Status& status) {
    ClientLog(ClientLogLevel::kError, absl::StrCat("no sharing with OpenGL: ", status.message()));
    return absl::IsNotFound(status) ? CL_INVALID_OPERATION : CL_INVALID_GL_SHAREGROUP_REFERENCE_KHR;
  };
  absl::StatusOr<std::unique_ptr<GlBinding>> binding = MakeGlBinding(ref);
  if (!binding.ok()) return refused(binding.status());
  std::shared_ptr<GlShare> share(new GlShare);
  auto opening = std::make_shared<Opening>();
  opening->binding = *std::move(binding);
  const bool posted = share->thread_.Post([opening, state = share->state_] {
    absl::StatusOr<std::unique_ptr<GlContexts>> contexts =
        GlContexts::Make(std::move(opening->binding));
    opening->status = contexts.status();
    if (contexts.ok()) state->contexts = *std::move(contexts);
    state->thread = std::this_thread::get_id();
    opening->done.Notify();
  });
  if (!posted) return CL_OUT_OF_HOST_MEMORY;
  if (!opening->done.WaitForNotificationWithTimeout(kRunTimeout)) {
    ClientLog(ClientLogLevel::kError, "OpenGL does not make a context in time");
    return CL_OUT_OF_RESOURCES;
  }
  if (!opening->status.ok()) return refused(opening->status);
  ExitGate::CloseAtExit();
  ExitGate::OfProcess().AddLast(share.get(), [weak = share->weak_from_this()] {
    const std::shared_ptr<GlShare> living = weak.lock();
    if (living == nullptr) return;
    // The fence may stand behind commands that nobody has flushed.
    if (living->AwaitsFences() && living->IsCurrentHere()) living->gl().Flush();
    living->Post([](GlContexts& contexts) { contexts.DropShadows(); });
  });
  share->state_->contexts->WhenDisplayCloses([weak = share->weak_from_this()] {
    const std::shared_ptr<GlShare> living = weak.lock();
    if (living == nullptr) return;
    living->Post([](GlContexts& contexts) {
      contexts.DropShadows();
      contexts.Close();
    });
  });
  share->binding_ = &share->state_->contexts->binding();
  if (share->caps().new_contexts_wait) share->waiters().MakeNow();
  *out = std::move(share);
  return CL_SUCCESS;
}

GlShare::~GlShare() {
  ExitGate::OfProcess().RemoveLast(this);
  {
    absl::MutexLock lock(&mu_);
    waiters_.reset();
  }
  // Where they are current, after the jobs that still use them. In a forked child, and once the
  // process exits, they are left as they are.
  if (!RunLast(thread_, state_->thread, [state = state_] { state->contexts.reset(); })) {
    static_cast<void>(new std::shared_ptr<State>(state_));
  }
}

FenceWaiters& GlShare::waiters() {
  absl::MutexLock lock(&mu_);
  if (waiters_ == nullptr) waiters_ = std::make_unique<FenceWaiters>(binding_->Sibling());
  return *waiters_;
}

bool GlShare::AwaitsFences() {
  absl::MutexLock lock(&mu_);
  return waiters_ != nullptr && waiters_->IsBusy();
}

cl_int GlShare::Run(Job job) {
  struct Running {
    absl::Notification done;
    cl_int status = CL_OUT_OF_RESOURCES;
  };
  auto running = std::make_shared<Running>();
  const bool posted = thread_.Post([job = std::move(job), running, state = state_] {
    running->status = state->contexts->closed() ? CL_INVALID_GL_OBJECT : job(*state->contexts);
    running->done.Notify();
  });
  if (!posted) return CL_OUT_OF_RESOURCES;
  if (!running->done.WaitForNotificationWithTimeout(kRunTimeout)) {
    ClientLog(ClientLogLevel::kError, "OpenGL does not answer in time");
    return CL_OUT_OF_RESOURCES;
  }
  return running->status;
}

void GlShare::Post(std::function<void(GlContexts&)> job) {
  thread_.Post([job = std::move(job), state = state_] {
    if (!state->contexts->closed()) job(*state->contexts);
  });
}

}  // namespace sluice::client::sharing
