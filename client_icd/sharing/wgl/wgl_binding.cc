// SPDX-License-Identifier: Apache-2.0
// WGL behind gl_binding.h.
//
// Drivers for Windows refuse to share with a context that is current on another thread. So the
// application's context is shared with once, by an *anchor*: a context of ours that is never
// current anywhere, with which all others share. It is made on the application's thread if its
// context is current there (MakeGlBinding), else on ours, where it works unless the context is
// current on a third one.
//
// Ours are current on a pbuffer of a single pixel: a window of ours would have to be served with
// messages, and the application may destroy its own at any time.
#include "client_icd/sharing/wgl/wgl_api.h"
//
#include <memory>
#include <utility>
#include <vector>

#include "client_icd/sharing/gl/gl_binding.h"

namespace sluice::client::sharing {
namespace {

using Attributes = std::vector<int>;

// From what serves best to what is least. The default is the highest compatible version, which for
// some drivers is an old one.
const Attributes kVersions[] = {{},
                                {WGL_CONTEXT_MAJOR_VERSION_ARB, 4, WGL_CONTEXT_MINOR_VERSION_ARB, 5,
                                 WGL_CONTEXT_PROFILE_MASK_ARB, WGL_CONTEXT_CORE_PROFILE_BIT_ARB},
                                {WGL_CONTEXT_MAJOR_VERSION_ARB, 3, WGL_CONTEXT_MINOR_VERSION_ARB, 2,
                                 WGL_CONTEXT_PROFILE_MASK_ARB, WGL_CONTEXT_CORE_PROFILE_BIT_ARB}};
// WGL_ARB_create_context_robustness and _no_error: what a share group must have in common. The
// application's cannot be asked for, so each is tried.
const Attributes kGroups[] = {
    {},
    {WGL_CONTEXT_RESET_NOTIFICATION_STRATEGY_ARB, WGL_LOSE_CONTEXT_ON_RESET_ARB,
     WGL_CONTEXT_FLAGS_ARB, WGL_CONTEXT_ROBUST_ACCESS_BIT_ARB},
    {WGL_CONTEXT_RESET_NOTIFICATION_STRATEGY_ARB, WGL_LOSE_CONTEXT_ON_RESET_ARB},
    {WGL_CONTEXT_OPENGL_NO_ERROR_ARB, TRUE},
    {WGL_CONTEXT_OPENGL_NO_ERROR_ARB, TRUE, WGL_CONTEXT_RESET_NOTIFICATION_STRATEGY_ARB,
     WGL_LOSE_CONTEXT_ON_RESET_ARB}};

class WglContext final : public GlNativeContext {
 public:
  WglContext(const WglApi* wgl, HDC drawable, HGLRC context)
      : wgl_(wgl), drawable_(drawable), context_(context) {}
  ~WglContext() override {
    if (wgl_->GetCurrentContext() == context_) wgl_->MakeCurrent(nullptr, nullptr);
    wgl_->DeleteContext(context_);
  }
  bool MakeCurrent() override { return wgl_->MakeCurrent(drawable_, context_) != FALSE; }

 private:
  const WglApi* const wgl_;  // The binding's, which outlives its contexts.
  const HDC drawable_;
  const HGLRC context_;
};

class WglBinding final : public GlBinding {
 public:
  WglBinding(WglApi wgl, const GlContextRef& ref)
      : wgl_(std::move(wgl)),
        device_(static_cast<HDC>(ref.display)),
        shared_(static_cast<HGLRC>(ref.context)) {}
  ~WglBinding() override {
    if (pbuffer_ != nullptr) {
      extensions_.ReleasePbufferDCARB(pbuffer_, drawable_);
      extensions_.DestroyPbufferARB(pbuffer_);
    }
    if (anchor_ != nullptr) wgl_.DeleteContext(anchor_);
  }

  // On the application's thread.
  void Prepare() {
    if (wgl_.GetPixelFormat(device_) == 0 || wgl_.GetCurrentContext() != shared_) return;
    extensions_ = WglExtensions(wgl_);
    MakeAnchor();
  }

  absl::Status Init() override {
    const int format = wgl_.GetPixelFormat(device_);
    if (format == 0) {
      return absl::InvalidArgumentError("WGL knows no such device context with a pixel format");
    }
    if (anchor_ == nullptr) {
      const absl::Status found = FindExtensions();
      if (!found.ok()) return found;
      MakeAnchor();
    }
    if (anchor_ == nullptr) {
      return absl::UnavailableError(
          "WGL makes no context that shares with that one; is it current on another thread?");
    }
    drawable_ = device_;
    if (extensions_.has_pbuffers()) MakePbuffer(format);
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<GlNativeContext>> CreateContext() override {
    for (const Attributes& version : kVersions) {
      for (const Attributes& group : kGroups) {
        const HGLRC context = Create(drawable_, anchor_, version, group);
        if (context == nullptr) continue;
        auto made = std::make_unique<WglContext>(&wgl_, drawable_, context);
        if (!made->MakeCurrent()) continue;
        if (CurrentVersion([this](const char* name) { return Lookup(name); }).enough()) return made;
      }
    }
    return absl::UnavailableError(
        "no context of OpenGL 3.2 can be made in the share group of the application's, neither as "
        "it "
        "is nor robust nor without errors");
  }

  GlContextRef Sibling() const override { return {GlContextRef::Kind::kWgl, drawable_, anchor_}; }
  bool ImportsDescriptors() const override { return false; }
  bool IsImage(void*) const override { return false; }
  // opengl32.dll has those of OpenGL 1.1 itself, and the driver the others.
  void* Lookup(const char* function) const override {
    void* const address = wgl_.FindExtension(function);
    return address != nullptr ? address : wgl_.opengl.Find(function);
  }
  bool IsCurrentHere() const override { return wgl_.GetCurrentContext() != nullptr; }
  bool HasNamedHandle() const override { return wgl_.GetCurrentContext() == shared_; }
  void LeaveThread() override {}

 private:
  // By a context of ours that is current for that long.
  absl::Status FindExtensions() {
    const HGLRC plain = wgl_.CreateContext(device_);
    if (plain == nullptr) {
      return absl::InvalidArgumentError("WGL makes no context for that device context");
    }
    if (wgl_.MakeCurrent(device_, plain)) {
      extensions_ = WglExtensions(wgl_);
      wgl_.MakeCurrent(nullptr, nullptr);
    }
    wgl_.DeleteContext(plain);
    if (extensions_.CreateContextAttribsARB != nullptr) return absl::OkStatus();
    return absl::UnavailableError("OpenGL there is older than 3.2: no WGL_ARB_create_context");
  }

  void MakeAnchor() {
    for (const Attributes& version : kVersions) {  // Without errors, only of OpenGL 2 at least.
      for (const Attributes& group : kGroups) {
        if (anchor_ == nullptr) anchor_ = Create(device_, shared_, version, group);
      }
    }
  }

  HGLRC Create(HDC device, HGLRC share, const Attributes& version, const Attributes& group) const {
    if (extensions_.CreateContextAttribsARB == nullptr) return nullptr;
    Attributes attributes = version;
    attributes.insert(attributes.end(), group.begin(), group.end());
    attributes.push_back(0);
    return extensions_.CreateContextAttribsARB(device, share, attributes.data());
  }

  // Of the application's pixel format, if that goes with pbuffers, else of another. Without one the
  // application's own device context has to do. Never single-buffered: a driver may end the
  // process (BadMatch of X_ShmPutImage) when what was drawn to such a pbuffer is flushed.
  void MakePbuffer(int format) {
    const int asked[] = {WGL_DRAW_TO_PBUFFER_ARB, WGL_DOUBLE_BUFFER_ARB};
    int has[] = {0, 0};
    if (!extensions_.GetPixelFormatAttribivARB(device_, format, 0, 2, asked, has) || has[0] == 0 ||
        has[1] == 0) {
      const int wanted[] = {WGL_DRAW_TO_PBUFFER_ARB,
                            TRUE,
                            WGL_DOUBLE_BUFFER_ARB,
                            TRUE,
                            WGL_SUPPORT_OPENGL_ARB,
                            TRUE,
                            WGL_PIXEL_TYPE_ARB,
                            WGL_TYPE_RGBA_ARB,
                            0};
      UINT count = 0;
      if (!extensions_.ChoosePixelFormatARB(device_, wanted, nullptr, 1, &format, &count) ||
          count == 0) {
        return;
      }
    }
    const int none = 0;
    pbuffer_ = extensions_.CreatePbufferARB(device_, format, 1, 1, &none);
    if (pbuffer_ == nullptr) return;
    const HDC drawable = extensions_.GetPbufferDCARB(pbuffer_);
    if (drawable != nullptr) {
      drawable_ = drawable;
      return;
    }
    extensions_.DestroyPbufferARB(pbuffer_);
    pbuffer_ = nullptr;
  }

  const WglApi wgl_;
  const HDC device_;    // The application's.
  const HGLRC shared_;  // The application's.
  WglExtensions extensions_;
  HGLRC anchor_ = nullptr;  // Ours; constant after Init, as all that follows.
  HPBUFFERARB pbuffer_ = nullptr;
  HDC drawable_ = nullptr;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GlBinding>> MakeGlBinding(const GlContextRef& ref) {
  if (ref.kind != GlContextRef::Kind::kWgl) {
    return absl::NotFoundError("OpenGL on Windows is shared by WGL: CL_WGL_HDC_KHR");
  }
  absl::StatusOr<WglApi> wgl = WglApi::Find();
  if (!wgl.ok()) return wgl.status();
  auto binding = std::make_unique<WglBinding>(*std::move(wgl), ref);
  binding->Prepare();
  return binding;
}

}  // namespace sluice::client::sharing
