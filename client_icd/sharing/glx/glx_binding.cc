// SPDX-License-Identifier: Apache-2.0
// X reports some errors after the fact, to a handler that belongs to the whole process and, unless
// somebody replaces it, ends it. While we talk GLX, ours stands before the application's and passes
// on what is not about GLX on that connection.
#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "client_icd/sharing/gl/gl_api.h"
#include "client_icd/sharing/gl/gl_bindings_linux.h"
#include "client_icd/sharing/glx/glx_api.h"

namespace sluice::client::sharing {
namespace {

// GL/glx.h and GL/glxext.h, which cannot be included without X11's headers.
constexpr int kFbConfigId = 0x8013;
constexpr int kScreen = 0x800C;
constexpr int kDrawableType = 0x8010;
constexpr int kPbufferBit = 0x4;
constexpr int kPbufferHeight = 0x8040;
constexpr int kPbufferWidth = 0x8041;
constexpr int kRgbaType = 0x8014;
constexpr int kRenderType = 0x8011;
constexpr int kRgbaBit = 0x1;
constexpr int kContextMajor = 0x2091;
constexpr int kContextMinor = 0x2092;
constexpr int kContextFlags = 0x2094;
constexpr int kContextRobustAccess = 0x4;
constexpr int kContextProfileMask = 0x9126;
constexpr int kContextCore = 0x1;
constexpr int kResetStrategy = 0x8256;
constexpr int kLoseContextOnReset = 0x8252;
constexpr int kNoError = 0x31B3;

// More configurations than this are not tried for a context that does not say which it has.
constexpr size_t kMostConfigs = 16;

using CreateContextAttribs = void* (*)(void* display, void* config, void* share, int direct,
                                       const int* attributes);
using Attributes = std::vector<int>;

// One holder at a time: the handler is the process's. Never destroyed: a process may end at any
// time.
absl::Mutex& error_mu = *new absl::Mutex;
std::atomic<void*> guarded_display{nullptr};
std::atomic<int> guarded_request{0};
std::atomic<int> guarded_errors{0};
std::atomic<GlxApi::ErrorHandler> application_handler{nullptr};

// XErrorEvent of X11/Xlib.h.
struct ErrorEvent {
  int type;
  void* display;
  unsigned long resource;
  unsigned long serial;
  unsigned char error_code;
  unsigned char request_code;
  unsigned char minor_code;
};

int OnError(void* display, void* error_event) {
  const int request = static_cast<const ErrorEvent*>(error_event)->request_code;
  if (display == guarded_display.load(std::memory_order_relaxed) &&
      request == guarded_request.load(std::memory_order_relaxed)) {
    guarded_errors.fetch_add(1, std::memory_order_relaxed);
    return 0;
  }
  const GlxApi::ErrorHandler next = application_handler.load(std::memory_order_relaxed);
  return next != nullptr ? next(display, error_event) : 0;
}

// While it lives, errors of GLX on `display` are counted, and nobody is told.
class ABSL_SCOPED_LOCKABLE ErrorGuard {
 public:
  ErrorGuard(const GlxApi& glx, void* display) ABSL_EXCLUSIVE_LOCK_FUNCTION(error_mu)
      : glx_(glx), display_(display) {
    error_mu.Lock();
    int request = 0;
    int first_event = 0;
    int first_error = 0;
    glx_.QueryExtension(display, "GLX", &request, &first_event, &first_error);
    guarded_request.store(request, std::memory_order_relaxed);
    guarded_display.store(display, std::memory_order_relaxed);
    guarded_errors.store(0, std::memory_order_relaxed);
    application_handler.store(glx_.SetErrorHandler(&OnError), std::memory_order_relaxed);
  }
  ~ErrorGuard() ABSL_UNLOCK_FUNCTION() {
    glx_.Sync(display_, 0);  // Errors on their way arrive while the handler is ours.
    const GlxApi::ErrorHandler mine =
        glx_.SetErrorHandler(application_handler.load(std::memory_order_relaxed));
    // The application put another one in the meantime: that one stays.
    if (mine != &OnError) glx_.SetErrorHandler(mine);
    guarded_display.store(nullptr, std::memory_order_relaxed);
    error_mu.Unlock();
  }
  bool Failed() const {
    glx_.Sync(display_, 0);
    return guarded_errors.load(std::memory_order_relaxed) != 0;
  }

 private:
  const GlxApi& glx_;
  void* const display_;
};

// A Display of the application with contexts of ours on it. XCloseDisplay asks for their end and
// waits for it (Xlib calls extensions before it closes, the last one first). A context that is
// still there then, behind a call of GL that does not return, is left alone.
struct UsedDisplay {
  std::atomic<bool> closed{false};
  absl::Mutex mu;
  int contexts ABSL_GUARDED_BY(mu) = 0;
  std::map<const void*, std::function<void()>> closers ABSL_GUARDED_BY(mu);  // By binding.
};
constexpr absl::Duration kCloseTimeout = absl::Seconds(2);

// Those with a hook, by address. Never destroyed: a process may end at any time.
absl::Mutex& displays_mu = *new absl::Mutex;
auto& displays = *new absl::flat_hash_map<void*, std::shared_ptr<UsedDisplay>>;

int OnClose(void* display, int*) {
  std::shared_ptr<UsedDisplay> used;
  {
    absl::MutexLock lock(&displays_mu);
    const auto it = displays.find(display);
    if (it == displays.end()) return 0;
    used = std::move(it->second);
    displays.erase(it);
  }
  std::map<const void*, std::function<void()>> closers;
  {
    absl::MutexLock lock(&used->mu);
    closers.swap(used->closers);
  }
  for (const auto& [binding, close] : closers) close();
  absl::MutexLock lock(&used->mu);
  const auto unused = [&used]()
                          ABSL_EXCLUSIVE_LOCKS_REQUIRED(used->mu) { return used->contexts == 0; };
  used->mu.AwaitWithTimeout(absl::Condition(&unused), kCloseTimeout);
  used->closed.store(true);
  return 0;
}

std::shared_ptr<UsedDisplay> UseDisplay(const GlxApi& glx, void* display) {
  absl::MutexLock lock(&displays_mu);
  std::shared_ptr<UsedDisplay>& used = displays[display];
  if (used != nullptr) return used;
  used = std::make_shared<UsedDisplay>();
  const int* codes = glx.AddExtension(display);
  if (codes != nullptr) glx.ESetCloseDisplay(display, codes[0], &OnClose);
  return used;
}

class GlxContext final : public GlNativeContext {
 public:
  GlxContext(const GlxApi* glx, void* display, std::shared_ptr<UsedDisplay> used, void* context)
      : glx_(glx), display_(display), used_(std::move(used)), context_(context) {
    absl::MutexLock lock(&used_->mu);
    ++used_->contexts;
  }
  ~GlxContext() override {
    if (used_->closed.load()) return;
    Destroy();
    absl::MutexLock lock(&used_->mu);
    --used_->contexts;
  }
  // Without a drawable, nothing goes to the server for it.
  bool MakeCurrent() override {
    return glx_->MakeContextCurrent(display_, pbuffer_, pbuffer_, context_) != 0;
  }
  void TakePbuffer(unsigned long pbuffer) { pbuffer_ = pbuffer; }

 private:
  void Destroy() {
    ErrorGuard guard(*glx_, display_);
    if (glx_->GetCurrentContext() == context_) {
      glx_->MakeContextCurrent(display_, 0, 0, nullptr);
    }
    if (pbuffer_ != 0) glx_->DestroyPbuffer(display_, pbuffer_);
    glx_->DestroyContext(display_, context_);
  }

  const GlxApi* const glx_;
  void* const display_;
  const std::shared_ptr<UsedDisplay> used_;
  void* const context_;
  unsigned long pbuffer_ = 0;  // For drivers that make nothing current without.
};

class GlxBinding final : public GlBinding {
 public:
  GlxBinding(GlxApi glx, const GlContextRef& ref)
      : glx_(std::move(glx)), shared_(ref.context), display_(ref.display) {}
  ~GlxBinding() override {
    if (used_ == nullptr) return;
    absl::MutexLock lock(&used_->mu);
    used_->closers.erase(this);
  }

  absl::Status Init() override {
    if (display_ == nullptr) return absl::InvalidArgumentError("no display");
    used_ = UseDisplay(glx_, display_);
    ErrorGuard guard(glx_, display_);
    int config_id = 0;
    if (glx_.QueryContext(display_, shared_, kFbConfigId, &config_id) != 0 ||
        glx_.QueryContext(display_, shared_, kScreen, &screen_) != 0 || guard.Failed()) {
      return absl::InvalidArgumentError("GLX knows no such context");
    }
    configs_ = FindConfigs(config_id);
    if (configs_.empty()) {
      return absl::UnavailableError("the context's configuration cannot be found");
    }
    if (IsOfAnotherDisplay(guard)) {
      return absl::InvalidArgumentError("the context was made with another display");
    }
    if (HasWord(glx_.QueryExtensionsString(display_, screen_), "GLX_ARB_create_context")) {
      create_with_attributes_ =
          reinterpret_cast<CreateContextAttribs>(Lookup("glXCreateContextAttribsARB"));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<GlNativeContext>> CreateContext() override {
    for (void* config : configs_) {
      config_ = config;
      std::unique_ptr<GlNativeContext> context = CreateWithConfig();
      if (context == nullptr) continue;
      configs_ = {config};
      return context;
    }
    return absl::UnavailableError(
        "no context of OpenGL 3.2 can be made in the share group of the application's, neither as "
        "it "
        "is nor robust nor without errors");
  }

  GlContextRef Sibling() const override { return {GlContextRef::Kind::kGlx, display_, first_}; }
  bool ImportsDescriptors() const override { return true; }
  bool IsImage(void*) const override { return false; }
  void* Lookup(const char* function) const override {
    void* const address = glx_.GetProcAddressARB(reinterpret_cast<const unsigned char*>(function));
    return address != nullptr ? address : FindInGlLibraries(function);
  }
  bool IsCurrentHere() const override { return glx_.GetCurrentContext() != nullptr; }
  bool HasNamedHandle() const override { return glx_.GetCurrentContext() == shared_; }
  void LeaveThread() override {}
  void WhenDisplayCloses(std::function<void()> close) override {
    absl::MutexLock lock(&used_->mu);
    used_->closers[this] = std::move(close);
  }
  bool DisplayIsGone() const override { return used_->closed.load(); }

 private:
  // The id of a context is of the range of the connection that made it. Believed only of a driver
  // that gives such an id to a context of ours, which shares with nobody.
  bool IsOfAnotherDisplay(const ErrorGuard& guard) const {
    const auto id_of = reinterpret_cast<unsigned long (*)(void*)>(Lookup("glXGetContextIDEXT"));
    if (id_of == nullptr || glx_.GetXcbSetup == nullptr) return false;
    const XcbSetup& setup = *glx_.GetXcbSetup(glx_.GetXcbConnection(display_));
    const auto is_foreign = [&](void* context) {
      return (id_of(context) & ~setup.resource_id_mask) != setup.resource_id_base;
    };
    if (!is_foreign(shared_)) return false;
    void* const ours = glx_.CreateNewContext(display_, configs_.front(), kRgbaType, nullptr, 1);
    if (ours == nullptr) return false;
    const bool certain = !guard.Failed() && !is_foreign(ours);
    glx_.DestroyContext(display_, ours);
    return certain;
  }

  // Null if no context of OpenGL 3.2 can be made with config_.
  std::unique_ptr<GlNativeContext> CreateWithConfig() {
    // The default is the highest compatible version, which for some drivers is an old one.
    const std::vector<Attributes> versions = {
        {},
        {kContextMajor, 4, kContextMinor, 5, kContextProfileMask, kContextCore},
        {kContextMajor, 3, kContextMinor, 2, kContextProfileMask, kContextCore}};
    // GLX_ARB_create_context_robustness and _no_error: what a share group must have in common.
    const std::vector<Attributes> groups = {
        {},
        {kResetStrategy, kLoseContextOnReset, kContextFlags, kContextRobustAccess},
        {kResetStrategy, kLoseContextOnReset},
        {kNoError, 1},
        {kNoError, 1, kResetStrategy, kLoseContextOnReset}};
    for (const Attributes& version : versions) {
      for (const Attributes& group : groups) {
        Attributes attributes = version;
        attributes.insert(attributes.end(), group.begin(), group.end());
        attributes.push_back(0);
        std::unique_ptr<GlNativeContext> context = Try(attributes);
        if (context != nullptr) return context;
      }
    }
    return nullptr;
  }

  // Null if there is no such context, or it is too old.
  std::unique_ptr<GlNativeContext> Try(const Attributes& attributes) {
    void* const context = Create(attributes);
    if (context == nullptr) return nullptr;
    auto made = std::make_unique<GlxContext>(&glx_, display_, used_, context);
    if (!MakeFirstCurrent(made.get())) return nullptr;
    if (!CurrentVersion([this](const char* name) { return Lookup(name); }).enough()) return nullptr;
    if (first_ == nullptr) first_ = context;
    return made;
  }

  void* Create(const Attributes& attributes) {
    const bool plain = attributes.size() == 1;
    if (create_with_attributes_ == nullptr && !plain) return nullptr;
    // Later ones with our own first one, which outlives the application's.
    void* const share = first_ != nullptr ? first_ : shared_;
    ErrorGuard guard(glx_, display_);
    void* const context =
        create_with_attributes_ != nullptr
            ? create_with_attributes_(display_, config_, share, 1, attributes.data())
            : glx_.CreateNewContext(display_, config_, kRgbaType, share, 1);
    if (context == nullptr || !guard.Failed()) return context;
    glx_.DestroyContext(display_, context);
    return nullptr;
  }

  bool MakeFirstCurrent(GlxContext* context) {
    {
      ErrorGuard guard(glx_, display_);
      if (context->MakeCurrent() && !guard.Failed()) return true;
    }
    ErrorGuard guard(glx_, display_);
    context->TakePbuffer(MakePbuffer());
    return context->MakeCurrent() && !guard.Failed();
  }

  int ConfigAttribute(void* config, int attribute) const {
    int value = 0;
    glx_.GetFBConfigAttrib(display_, config, attribute, &value);
    return value;
  }

  // The one with that id, among all: a driver's glXChooseFBConfig may not find a configuration by
  // its id. A context that was made from a visual (glXCreateContext, as SDL and GLUT do) has none,
  // and the driver gives -1: then all that may go with it, those with pbuffers first.
  std::vector<void*> FindConfigs(int id) const {
    int count = 0;
    void** all = glx_.GetFBConfigs(display_, screen_, &count);
    std::vector<void*> rgba;
    for (int i = 0; i < count; ++i) {
      if (ConfigAttribute(all[i], kFbConfigId) == id) {
        rgba = {all[i]};
        break;
      }
      if ((ConfigAttribute(all[i], kRenderType) & kRgbaBit) != 0) rgba.push_back(all[i]);
    }
    if (all != nullptr) glx_.Free(all);
    std::stable_partition(rgba.begin(), rgba.end(), [this](void* config) {
      return (ConfigAttribute(config, kDrawableType) & kPbufferBit) != 0;
    });
    if (rgba.size() > kMostConfigs) rgba.resize(kMostConfigs);
    return rgba;
  }

  // One pixel; 0 if the configuration has none: contexts since OpenGL 3.0 can be current without.
  unsigned long MakePbuffer() {
    if ((ConfigAttribute(config_, kDrawableType) & kPbufferBit) == 0) return 0;
    const int one_pixel[] = {kPbufferWidth, 1, kPbufferHeight, 1, 0};
    return glx_.CreatePbuffer(display_, config_, one_pixel);
  }

  const GlxApi glx_;
  void* const shared_;   // The application's context.
  void* const display_;  // The application's: see gl_binding.h.
  std::shared_ptr<UsedDisplay> used_;
  std::vector<void*> configs_;  // Which to try; one, once there is a context.
  void* config_ = nullptr;      // The one being tried.
  void* first_ = nullptr;       // Our first context; constant once there is one.
  int screen_ = 0;
  CreateContextAttribs create_with_attributes_ = nullptr;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GlBinding>> MakeGlxBinding(const GlContextRef& ref) {
  absl::StatusOr<GlxApi> glx = GlxApi::Find();
  if (!glx.ok()) return glx.status();
  return std::make_unique<GlxBinding>(*std::move(glx), ref);
}

}  // namespace sluice::client::sharing
