// SPDX-License-Identifier: Apache-2.0
// WGL behind gl_app.h: a hidden window, and a context of the highest compatible version.
#include "tests/sharing/wgl/wgl_app.h"

#include <windows.h>
//
#include <GL/glcorearb.h>
#include <GL/wglext.h>

#include <cstdlib>

namespace sluice::gltest {
namespace {

constexpr const char* kWindowClass = "sluice-gl-test";

void* Lookup(const char* name) {
  void* const address = reinterpret_cast<void*>(wglGetProcAddress(name));
  if (address != nullptr) return address;
  return reinterpret_cast<void*>(GetProcAddress(GetModuleHandleA("opengl32.dll"), name));
}

class WglApp final : public GlApp {
 public:
  WglApp() : GlApp(Binding::kWgl) {}
  ~WglApp() override {
    DestroyContext();
    if (device_ != nullptr) ReleaseDC(window_, device_);
    if (window_ != nullptr) DestroyWindow(window_);
  }

  // Empty, or what is missing.
  std::string Init(WglApp* share, Promise promise, DWORD buffers = PFD_DOUBLEBUFFER) {
    static const ATOM registered = [] {
      WNDCLASSA type = {};
      type.style = CS_OWNDC;
      type.lpfnWndProc = DefWindowProcA;
      type.lpszClassName = kWindowClass;
      return RegisterClassA(&type);
    }();
    if (registered == 0) return "no class of windows";
    window_ = CreateWindowA(kWindowClass, "", WS_OVERLAPPEDWINDOW, 0, 0, 16, 16, nullptr, nullptr,
                            nullptr, nullptr);
    device_ = window_ == nullptr ? nullptr : GetDC(window_);
    if (device_ == nullptr) return "no window: run under Xvfb";
    PIXELFORMATDESCRIPTOR wanted = {};
    wanted.nSize = sizeof(wanted);
    wanted.nVersion = 1;
    wanted.dwFlags = PFD_DRAW_TO_WINDOW | PFD_SUPPORT_OPENGL | buffers;
    wanted.cColorBits = 32;
    const int format = ChoosePixelFormat(device_, &wanted);
    if (format == 0 || !SetPixelFormat(device_, format, &wanted)) return "no pixel format";
    context_ = wglCreateContext(device_);
    if (context_ == nullptr) return "no WGL context";
    MakeCurrent();
    if (promise != Promise::kNone || share != nullptr) {
      const std::string why = InitWithAttributes(share, promise);
      if (!why.empty()) return why;
    }
    Load(&Lookup);
    return "";
  }

  std::vector<cl_context_properties> Properties() const override {
    return {CL_GL_CONTEXT_KHR, reinterpret_cast<cl_context_properties>(context_), CL_WGL_HDC_KHR,
            reinterpret_cast<cl_context_properties>(device_)};
  }
  void MakeCurrent() override { EXPECT_TRUE(wglMakeCurrent(device_, context_)); }
  void ClearCurrent() override { wglMakeCurrent(nullptr, nullptr); }
  void DestroyContext() override {
    if (context_ == nullptr) return;
    if (wglGetCurrentContext() == context_) ClearCurrent();
    wglDeleteContext(context_);
    context_ = nullptr;
  }
  std::vector<const void*> Current() const override {
    return {wglGetCurrentContext(), wglGetCurrentDC()};
  }

 private:
  // In place of the plain context, which is current so that the functions are found.
  std::string InitWithAttributes(WglApp* share, Promise promise) {
    const auto list =
        reinterpret_cast<PFNWGLGETEXTENSIONSSTRINGARBPROC>(Lookup("wglGetExtensionsStringARB"));
    const auto create =
        reinterpret_cast<PFNWGLCREATECONTEXTATTRIBSARBPROC>(Lookup("wglCreateContextAttribsARB"));
    if (list == nullptr || create == nullptr) return "no WGL_ARB_create_context";
    const std::string extensions = std::string(list(device_)) + " ";
    if (promise == Promise::kNoError &&
        extensions.find("WGL_ARB_create_context_no_error ") == std::string::npos) {
      return "this WGL has no WGL_ARB_create_context_no_error";
    }
    if (promise == Promise::kRobust &&
        extensions.find("WGL_ARB_create_context_robustness ") == std::string::npos) {
      return "this WGL has no WGL_ARB_create_context_robustness";
    }
    std::vector<int> attributes;
    if (promise == Promise::kRobust) {
      attributes = {WGL_CONTEXT_RESET_NOTIFICATION_STRATEGY_ARB, WGL_LOSE_CONTEXT_ON_RESET_ARB};
    } else if (promise == Promise::kNoError) {
      attributes = {WGL_CONTEXT_OPENGL_NO_ERROR_ARB, TRUE};
    } else if (promise == Promise::kCore) {
      attributes = {WGL_CONTEXT_MAJOR_VERSION_ARB, 3,
                    WGL_CONTEXT_MINOR_VERSION_ARB, 3,
                    WGL_CONTEXT_PROFILE_MASK_ARB,  WGL_CONTEXT_CORE_PROFILE_BIT_ARB};
    }
    attributes.push_back(0);
    DestroyContext();
    context_ = create(device_, share == nullptr ? nullptr : share->context_, attributes.data());
    if (context_ == nullptr) return "no WGL context with attributes";
    MakeCurrent();
    return "";
  }

  HWND window_ = nullptr;
  HDC device_ = nullptr;
  HGLRC context_ = nullptr;
};

}  // namespace

const std::vector<Binding>& Bindings() {
  static const auto* const bindings = new std::vector<Binding>{Binding::kWgl};
  return *bindings;
}

std::unique_ptr<GlApp> GlApp::Make(Binding, std::string* why, GlApp* share, Promise promise) {
  auto app = std::make_unique<WglApp>();
  *why = app->Init(static_cast<WglApp*>(share), promise);
  if (!why->empty()) app.reset();
  return app;
}

std::unique_ptr<GlApp> MakeSingleBuffered(std::string* why) {
  auto app = std::make_unique<WglApp>();
  *why = app->Init(nullptr, Promise::kNone, /*buffers=*/0);
  if (!why->empty()) app.reset();
  return app;
}

void SetVariable(const char* name, const char* value) { EXPECT_EQ(_putenv_s(name, value), 0); }

std::map<int, size_t> ResidentBytes() { return {}; }

size_t OpenDescriptors() {
  DWORD count = 0;
  EXPECT_TRUE(GetProcessHandleCount(GetCurrentProcess(), &count));
  return count;
}

}  // namespace sluice::gltest
