// SPDX-License-Identifier: Apache-2.0
// EGL and GLX behind gl_app.h.
#include "tests/sharing/gl_app.h"  // First: X11 makes a macro of a name of GoogleTest's.
//
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GL/glx.h>
#include <dirent.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>

namespace sluice::gltest {
namespace {

class EglApp final : public GlApp {
 public:
  EglApp(Binding binding, EGLDisplay display) : GlApp(binding), display_(display) {}
  ~EglApp() override { DestroyContext(); }

  bool Init(EglApp* share, Promise promise) {
    const EGLenum api = es() ? EGL_OPENGL_ES_API : EGL_OPENGL_API;
    const EGLint renderable = es() ? EGL_OPENGL_ES3_BIT : EGL_OPENGL_BIT;
    const EGLint wanted[] = {EGL_SURFACE_TYPE, 0, EGL_RENDERABLE_TYPE, renderable, EGL_NONE};
    EGLint count = 0;
    EGLConfig config = nullptr;
    if (eglBindAPI(api) != EGL_TRUE) return false;
    if (eglChooseConfig(display_, wanted, &config, 1, &count) != EGL_TRUE || count < 1)
      return false;
    std::vector<EGLint> attributes;
    if (es()) attributes = {EGL_CONTEXT_MAJOR_VERSION, 3};
    if (promise == Promise::kRobust) {
      attributes.insert(attributes.end(), {EGL_CONTEXT_OPENGL_RESET_NOTIFICATION_STRATEGY,
                                           EGL_LOSE_CONTEXT_ON_RESET});
    } else if (promise == Promise::kNoError) {
      // Of OpenGL and OpenGL ES 2 at least, says EGL_KHR_create_context_no_error.
      if (!es()) attributes = {EGL_CONTEXT_MAJOR_VERSION, 2};
      attributes.insert(attributes.end(), {EGL_CONTEXT_OPENGL_NO_ERROR_KHR, EGL_TRUE});
    } else if (promise == Promise::kCore) {
      if (es()) return false;
      attributes = {EGL_CONTEXT_MAJOR_VERSION,       3,
                    EGL_CONTEXT_MINOR_VERSION,       3,
                    EGL_CONTEXT_OPENGL_PROFILE_MASK, EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT};
    }
    attributes.push_back(EGL_NONE);
    context_ = eglCreateContext(
        display_, config, share == nullptr ? EGL_NO_CONTEXT : share->context_, attributes.data());
    if (context_ == EGL_NO_CONTEXT) return false;
    MakeCurrent();
    Load([](const char* name) { return reinterpret_cast<void*>(eglGetProcAddress(name)); });
    return true;
  }

  std::vector<cl_context_properties> Properties() const override {
    return {CL_GL_CONTEXT_KHR, reinterpret_cast<cl_context_properties>(context_),
            CL_EGL_DISPLAY_KHR, reinterpret_cast<cl_context_properties>(display_)};
  }
  void MakeCurrent() override {
    eglBindAPI(es() ? EGL_OPENGL_ES_API : EGL_OPENGL_API);
    EXPECT_EQ(eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, context_), EGL_TRUE);
  }
  void ClearCurrent() override {
    eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
  }
  void DestroyContext() override {
    if (context_ == EGL_NO_CONTEXT) return;
    if (eglGetCurrentContext() == context_) ClearCurrent();
    eglDestroyContext(display_, context_);
    context_ = EGL_NO_CONTEXT;
  }
  std::vector<const void*> Current() const override {
    return {eglGetCurrentContext(), eglGetCurrentDisplay(), eglGetCurrentSurface(EGL_DRAW),
            eglGetCurrentSurface(EGL_READ)};
  }
  void* egl_display() const override { return display_; }
  void* egl_context() const override { return context_; }

 private:
  const EGLDisplay display_;
  EGLContext context_ = EGL_NO_CONTEXT;
};

class GlxApp final : public GlApp {
 public:
  GlxApp(Binding binding, Display* display) : GlApp(binding), display_(display) {}
  ~GlxApp() override {
    DestroyContext();
    XCloseDisplay(display_);
  }

  bool Init(GlxApp* share, Promise promise) {
    if (promise == Promise::kRobust) return false;  // EGL's tests have it.
    const bool made =
        binding() == Binding::kGlxVisual ? MakeFromVisual(share) : MakeFromConfig(share, promise);
    if (!made) return false;
    MakeCurrent();
    Load([](const char* name) {
      return reinterpret_cast<void*>(
          glXGetProcAddressARB(reinterpret_cast<const unsigned char*>(name)));
    });
    return true;
  }

  bool MakeFromConfig(GlxApp* share, Promise promise) {
    const int wanted[] = {GLX_DRAWABLE_TYPE, GLX_PBUFFER_BIT, GLX_RENDER_TYPE, GLX_RGBA_BIT, None};
    int count = 0;
    GLXFBConfig* configs = glXChooseFBConfig(display_, DefaultScreen(display_), wanted, &count);
    if (configs == nullptr || count < 1) return false;
    const GLXContext with = share == nullptr ? nullptr : share->context_;
    if (es() || promise == Promise::kNoError || promise == Promise::kCore) {
      const char* has = glXQueryExtensionsString(display_, DefaultScreen(display_));
      const char* const extension = es() ? "GLX_EXT_create_context_es2_profile"
                                    : promise == Promise::kCore ? "GLX_ARB_create_context_profile"
                                                                : "GLX_ARB_create_context_no_error";
      if (std::strstr(has, extension) == nullptr) return false;
      const auto create = reinterpret_cast<PFNGLXCREATECONTEXTATTRIBSARBPROC>(glXGetProcAddressARB(
          reinterpret_cast<const unsigned char*>("glXCreateContextAttribsARB")));
      const int no_error[] = {GLX_CONTEXT_MAJOR_VERSION_ARB, 2, GLX_CONTEXT_OPENGL_NO_ERROR_ARB,
                              True, None};
      const int core[] = {GLX_CONTEXT_MAJOR_VERSION_ARB,
                          3,
                          GLX_CONTEXT_MINOR_VERSION_ARB,
                          3,
                          GLX_CONTEXT_PROFILE_MASK_ARB,
                          GLX_CONTEXT_CORE_PROFILE_BIT_ARB,
                          None};
      const int es3[] = {GLX_CONTEXT_MAJOR_VERSION_ARB,
                         3,
                         GLX_CONTEXT_MINOR_VERSION_ARB,
                         1,
                         GLX_CONTEXT_PROFILE_MASK_ARB,
                         GLX_CONTEXT_ES2_PROFILE_BIT_EXT,
                         None};
      const int* const attributes = es() ? es3 : promise == Promise::kCore ? core : no_error;
      context_ = create(display_, configs[0], with, True, attributes);
    } else {
      context_ = glXCreateNewContext(display_, configs[0], GLX_RGBA_TYPE, with, True);
    }
    const int size[] = {GLX_PBUFFER_WIDTH, 4, GLX_PBUFFER_HEIGHT, 4, None};
    drawable_ = glXCreatePbuffer(display_, configs[0], size);
    XFree(configs);
    return context_ != nullptr;
  }

  bool MakeFromVisual(GlxApp* share) {
    int wanted[] = {GLX_RGBA, GLX_DOUBLEBUFFER, GLX_RED_SIZE, 8, None};
    const int screen = DefaultScreen(display_);
    XVisualInfo* visual = glXChooseVisual(display_, screen, wanted);
    if (visual == nullptr) return false;
    const Window root = RootWindow(display_, screen);
    XSetWindowAttributes about = {};
    about.colormap = XCreateColormap(display_, root, visual->visual, AllocNone);
    drawable_ = XCreateWindow(display_, root, 0, 0, 4, 4, 0, visual->depth, InputOutput,
                              visual->visual, CWColormap, &about);
    context_ =
        glXCreateContext(display_, visual, share == nullptr ? nullptr : share->context_, True);
    XFree(visual);
    return context_ != nullptr;
  }

  std::vector<cl_context_properties> Properties() const override {
    return {CL_GL_CONTEXT_KHR, reinterpret_cast<cl_context_properties>(context_),
            CL_GLX_DISPLAY_KHR, reinterpret_cast<cl_context_properties>(display_)};
  }
  void MakeCurrent() override {
    EXPECT_EQ(glXMakeContextCurrent(display_, drawable_, drawable_, context_), True);
  }
  void ClearCurrent() override { glXMakeContextCurrent(display_, None, None, nullptr); }
  void DestroyContext() override {
    if (context_ == nullptr) return;
    if (glXGetCurrentContext() == context_) ClearCurrent();
    if (binding() != Binding::kGlxVisual) {
      glXDestroyPbuffer(display_, drawable_);
    } else {
      XDestroyWindow(display_, drawable_);
    }
    glXDestroyContext(display_, context_);
    context_ = nullptr;
  }
  std::vector<const void*> Current() const override {
    return {glXGetCurrentContext(), glXGetCurrentDisplay(),
            reinterpret_cast<const void*>(glXGetCurrentDrawable()),
            reinterpret_cast<const void*>(glXGetCurrentReadDrawable())};
  }

 private:
  Display* const display_;
  GLXContext context_ = nullptr;
  XID drawable_ = None;
};

// Initialised once and kept: EGL gives the same display for the same platform, to all tests.
EGLDisplay TheEglDisplay() {
  static const EGLDisplay display = [] {
    const auto get = reinterpret_cast<PFNEGLGETPLATFORMDISPLAYEXTPROC>(
        eglGetProcAddress("eglGetPlatformDisplayEXT"));
    EGLDisplay found = EGL_NO_DISPLAY;
    // SLUICE_TEST_EGL=device: the first device that EGL lists, as on a GPU machine without a
    // display.
    const char* platform = std::getenv("SLUICE_TEST_EGL");
    if (platform != nullptr && std::string(platform) == "device") {
      const auto list =
          reinterpret_cast<PFNEGLQUERYDEVICESEXTPROC>(eglGetProcAddress("eglQueryDevicesEXT"));
      EGLDeviceEXT device = nullptr;
      EGLint count = 0;
      if (list != nullptr && list(1, &device, &count) == EGL_TRUE && count > 0) {
        found = get(EGL_PLATFORM_DEVICE_EXT, device, nullptr);
      }
    } else if (get != nullptr) {
      found = get(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, nullptr);
    }
    if (found != EGL_NO_DISPLAY && eglInitialize(found, nullptr, nullptr) != EGL_TRUE) {
      return EGLDisplay{EGL_NO_DISPLAY};
    }
    return found;
  }();
  return display;
}

}  // namespace

const std::vector<Binding>& Bindings() {
  static const auto* const bindings =
      new std::vector<Binding>{Binding::kEglGl, Binding::kEglEs, Binding::kGlx};
  return *bindings;
}

std::unique_ptr<GlApp> GlApp::Make(Binding binding, std::string* why, GlApp* share,
                                   Promise promise) {
  if (binding != Binding::kEglGl && binding != Binding::kEglEs) {
    Display* display = XOpenDisplay(nullptr);
    if (display == nullptr) {
      *why = "no X display: run under Xvfb";
      return nullptr;
    }
    auto app = std::make_unique<GlxApp>(binding, display);
    if (app->Init(static_cast<GlxApp*>(share), promise)) return app;
    *why = "no GLX context";
    return nullptr;
  }
  const EGLDisplay display = TheEglDisplay();
  if (display == EGL_NO_DISPLAY) {
    *why = "no EGL display";
    return nullptr;
  }
  auto app = std::make_unique<EglApp>(binding, display);
  if (app->Init(static_cast<EglApp*>(share), promise)) return app;
  *why = "no EGL context";
  return nullptr;
}

void SetVariable(const char* name, const char* value) { ::setenv(name, value, 1); }

// The workers are those below the process that has started this one, and the daemon beside it
// (tests/system/harness.py).
std::map<int, size_t> ResidentBytes() {
  struct Process {
    std::string name;
    int parent = 0;
    size_t bytes = 0;
  };
  std::map<int, Process> all;
  DIR* folder = opendir("/proc");
  while (const dirent* entry = readdir(folder)) {
    const int pid = std::atoi(entry->d_name);
    if (pid == 0) continue;
    Process process;
    std::ifstream status("/proc/" + std::string(entry->d_name) + "/status");
    for (std::string key; status >> key; status.ignore(1000, '\n')) {
      if (key == "Name:") status >> process.name;
      if (key == "PPid:") status >> process.parent;
      if (key == "VmRSS:") status >> process.bytes;
    }
    process.bytes <<= 10;
    all[pid] = process;
  }
  closedir(folder);
  std::map<int, size_t> found;
  for (const auto& [pid, process] : all) {
    int above = pid;
    while (above > 1 && above != getppid()) above = all[above].parent;
    const bool ours = process.name.starts_with("sluice-worker") && above == getppid();
    if (pid == getpid() || ours) found[pid] = process.bytes;
  }
  return found;
}

size_t OpenDescriptors() {
  size_t count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

}  // namespace sluice::gltest
