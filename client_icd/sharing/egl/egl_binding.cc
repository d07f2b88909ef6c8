// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client_icd/sharing/egl/egl_api.h"
#include "client_icd/sharing/gl/gl_api.h"
#include "client_icd/sharing/gl/gl_bindings_linux.h"

namespace sluice::client::sharing {
namespace {

using Attributes = std::vector<EGLint>;

// From what serves best to what is least: the versions to ask for.
std::vector<Attributes> VersionCandidates(EGLenum api) {
  if (api == EGL_OPENGL_ES_API) {
    // The older tokens, which an EGL 1.4 with EGL_KHR_create_context knows under the same values.
    return {{EGL_CONTEXT_MAJOR_VERSION, 3, EGL_CONTEXT_MINOR_VERSION, 2},
            {EGL_CONTEXT_MAJOR_VERSION, 3, EGL_CONTEXT_MINOR_VERSION, 1},
            {EGL_CONTEXT_CLIENT_VERSION, 3}};
  }
  // The default is the highest compatible version, which for some drivers is an old one.
  return {{},
          {EGL_CONTEXT_MAJOR_VERSION, 4, EGL_CONTEXT_MINOR_VERSION, 5,
           EGL_CONTEXT_OPENGL_PROFILE_MASK, EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT},
          {EGL_CONTEXT_MAJOR_VERSION, 3, EGL_CONTEXT_MINOR_VERSION, 2,
           EGL_CONTEXT_OPENGL_PROFILE_MASK, EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT}};
}

// Attributes that a share group must have in common: EGL_BAD_MATCH if the reset notification
// behaviours of the context and of share_context differ (EGL 1.5, section 3.7.1.5), or what
// EGL_KHR_create_context_ no_error adds. The application's cannot be asked for, so each is tried.
// An EGL without such an attribute refuses it.
std::vector<Attributes> GroupCandidates() {
  return {{},
          {EGL_CONTEXT_OPENGL_RESET_NOTIFICATION_STRATEGY, EGL_LOSE_CONTEXT_ON_RESET,
           EGL_CONTEXT_OPENGL_ROBUST_ACCESS, EGL_TRUE},
          {EGL_CONTEXT_OPENGL_RESET_NOTIFICATION_STRATEGY, EGL_LOSE_CONTEXT_ON_RESET},
          {EGL_CONTEXT_OPENGL_RESET_NOTIFICATION_STRATEGY_EXT, EGL_LOSE_CONTEXT_ON_RESET_EXT},
          // Not with robust access, which no_error excludes.
          {EGL_CONTEXT_OPENGL_NO_ERROR_KHR, EGL_TRUE},
          {EGL_CONTEXT_OPENGL_NO_ERROR_KHR, EGL_TRUE,
           EGL_CONTEXT_OPENGL_RESET_NOTIFICATION_STRATEGY, EGL_LOSE_CONTEXT_ON_RESET}};
}

class EglContext final : public GlNativeContext {
 public:
  EglContext(const EglApi* egl, EGLDisplay display, EGLContext context, EGLSurface surface)
      : egl_(egl), display_(display), context_(context), surface_(surface) {}
  ~EglContext() override {
    if (egl_->GetCurrentContext() == context_) {
      egl_->MakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
    }
    if (surface_ != EGL_NO_SURFACE) egl_->DestroySurface(display_, surface_);
    egl_->DestroyContext(display_, context_);
  }
  bool MakeCurrent() override {
    return egl_->MakeCurrent(display_, surface_, surface_, context_) == EGL_TRUE;
  }

 private:
  const EglApi* const egl_;  // The binding's, which outlives its contexts.
  const EGLDisplay display_;
  const EGLContext context_;
  const EGLSurface surface_;
};

class EglBinding final : public GlBinding {
 public:
  EglBinding(EglApi egl, const GlContextRef& ref)
      : egl_(std::move(egl)), display_(ref.display), shared_(ref.context) {}

  absl::Status Init() override {
    const char* extensions = egl_.QueryString(display_, EGL_EXTENSIONS);
    if (extensions == nullptr) {
      return absl::InvalidArgumentError("EGL knows no such display, or it is not initialised");
    }
    surfaceless_ = HasWord(extensions, "EGL_KHR_surfaceless_context");
    return shared_ == EGL_NO_CONTEXT ? InitAlone(extensions) : InitShared();
  }

 private:
  // OpenGL ES, of which every EGL that has EGLImages has GL_OES_EGL_image.
  absl::Status InitAlone(const char* extensions) {
    api_ = EGL_OPENGL_ES_API;
    if (HasWord(extensions, "EGL_KHR_no_config_context")) return absl::OkStatus();
    const EGLint wanted[] = {EGL_SURFACE_TYPE, 0, EGL_RENDERABLE_TYPE, EGL_OPENGL_ES3_BIT,
                             EGL_NONE};
    EGLint count = 0;
    if (egl_.ChooseConfig(display_, wanted, &config_, 1, &count) != EGL_TRUE || count != 1) {
      return absl::UnavailableError("the display has no OpenGL ES 3");
    }
    return absl::OkStatus();
  }

  absl::Status InitShared() {
    EGLint type = 0;
    EGLint config_id = 0;
    if (egl_.QueryContext(display_, shared_, EGL_CONTEXT_CLIENT_TYPE, &type) != EGL_TRUE ||
        egl_.QueryContext(display_, shared_, EGL_CONFIG_ID, &config_id) != EGL_TRUE) {
      return absl::InvalidArgumentError(
          absl::StrCat("EGL knows no such context, error ", egl_.GetError()));
    }
    if (type != EGL_OPENGL_API && type != EGL_OPENGL_ES_API) {
      return absl::InvalidArgumentError("the context is neither of OpenGL nor of OpenGL ES");
    }
    api_ = static_cast<EGLenum>(type);
    if (config_id == 0) return absl::OkStatus();  // Made without one: EGL_KHR_no_config_context.
    EGLint count = 0;
    const EGLint wanted[] = {EGL_CONFIG_ID, config_id, EGL_NONE};
    if (egl_.ChooseConfig(display_, wanted, &config_, 1, &count) != EGL_TRUE || count != 1) {
      return absl::UnavailableError("the context's configuration cannot be found");
    }
    return absl::OkStatus();
  }

 public:
  absl::StatusOr<std::unique_ptr<GlNativeContext>> CreateContext() override {
    if (egl_.BindAPI(api_) != EGL_TRUE) return absl::UnavailableError("eglBindAPI failed");
    for (const Attributes& version : VersionCandidates(api_)) {
      for (const Attributes& group : GroupCandidates()) {
        Attributes attributes = version;
        attributes.insert(attributes.end(), group.begin(), group.end());
        attributes.push_back(EGL_NONE);
        std::unique_ptr<GlNativeContext> context = Try(attributes);
        if (context != nullptr) return context;
      }
    }
    return absl::UnavailableError(absl::StrCat(
        "no context of OpenGL 3.2 or OpenGL ES 3.1 can be made in the share group of "
        "the application's, neither as it is nor robust nor without errors; EGL's last "
        "error is 0x",
        absl::Hex(egl_.GetError())));
  }

  GlContextRef Sibling() const override { return {GlContextRef::Kind::kEgl, display_, first_}; }
  bool ImportsDescriptors() const override { return true; }
  // GL_OES_EGL_image asks for INVALID_VALUE for what is no image, but some drivers
  // read it first. The one call that looks an image up and does nothing to it is that which names
  // it for debugging; a name that the application gave is lost.
  bool IsImage(void* image) const override {
    if (!HasWord(egl_.QueryString(EGL_NO_DISPLAY, EGL_EXTENSIONS), "EGL_KHR_debug")) return true;
    const auto label =
        reinterpret_cast<PFNEGLLABELOBJECTKHRPROC>(egl_.GetProcAddress("eglLabelObjectKHR"));
    return label == nullptr || label(display_, EGL_OBJECT_IMAGE_KHR, image, nullptr) == EGL_SUCCESS;
  }
  void* Lookup(const char* function) const override {
    const auto address = reinterpret_cast<void*>(egl_.GetProcAddress(function));
    return address != nullptr ? address : FindInGlLibraries(function);
  }
  bool IsCurrentHere() const override {
    return egl_.GetCurrentContext() != EGL_NO_CONTEXT && egl_.GetCurrentDisplay() == display_;
  }
  bool HasNamedHandle() const override { return egl_.GetCurrentContext() == shared_; }
  void LeaveThread() override { egl_.ReleaseThread(); }

 private:
  // Null if there is no such context, or it is too old.
  std::unique_ptr<GlNativeContext> Try(const Attributes& attributes) {
    // Later ones with our own first one, which outlives the application's.
    const EGLContext share = first_ != EGL_NO_CONTEXT ? first_ : shared_;
    const EGLContext context = egl_.CreateContext(display_, config_, share, attributes.data());
    if (context == EGL_NO_CONTEXT) return nullptr;
    auto made = std::make_unique<EglContext>(&egl_, display_, context, MakeSurface());
    if (!made->MakeCurrent()) return nullptr;
    if (!CurrentVersion([this](const char* name) { return Lookup(name); }).enough()) return nullptr;
    if (first_ == EGL_NO_CONTEXT) first_ = context;
    return made;
  }

  // One pixel, where a context cannot be current without a surface. EGL_NO_SURFACE if there is no
  // configuration for it: MakeCurrent fails then.
  EGLSurface MakeSurface() {
    if (surfaceless_) return EGL_NO_SURFACE;
    EGLConfig config = config_;
    EGLint kinds = 0;
    if (config != EGL_NO_CONFIG_KHR) {
      egl_.GetConfigAttrib(display_, config, EGL_SURFACE_TYPE, &kinds);
    }
    if ((kinds & EGL_PBUFFER_BIT) == 0) {
      const EGLint renderable = api_ == EGL_OPENGL_API ? EGL_OPENGL_BIT : EGL_OPENGL_ES2_BIT;
      const EGLint wanted[] = {EGL_SURFACE_TYPE, EGL_PBUFFER_BIT, EGL_RENDERABLE_TYPE, renderable,
                               EGL_NONE};
      EGLint count = 0;
      if (egl_.ChooseConfig(display_, wanted, &config, 1, &count) != EGL_TRUE || count != 1) {
        return EGL_NO_SURFACE;
      }
    }
    const EGLint one_pixel[] = {EGL_WIDTH, 1, EGL_HEIGHT, 1, EGL_NONE};
    return egl_.CreatePbufferSurface(display_, config, one_pixel);
  }

  const EglApi egl_;
  const EGLDisplay display_;
  const EGLContext shared_;            // The application's.
  EGLContext first_ = EGL_NO_CONTEXT;  // Ours; constant once there is one.
  EGLConfig config_ = EGL_NO_CONFIG_KHR;
  EGLenum api_ = EGL_OPENGL_API;
  bool surfaceless_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GlBinding>> MakeEglBinding(const GlContextRef& ref) {
  absl::StatusOr<EglApi> egl = EglApi::Find();
  if (!egl.ok()) return egl.status();
  return std::make_unique<EglBinding>(*std::move(egl), ref);
}

}  // namespace sluice::client::sharing
