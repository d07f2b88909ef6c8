// SPDX-License-Identifier: Apache-2.0
//
// OpenGL without a display, for programs of the tests and benchmarks. It takes the first EGL
// device, as on a GPU machine without a window system, else Mesa's surfaceless platform. There is
// an OpenGL 3.3 context, current on the calling thread. Header only; ends the program with a reason
// when there is none.
#pragma once

#define EGL_NO_X11 1
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GL/gl.h>
#include <GL/glext.h>

#include <cstdio>
#include <cstdlib>

namespace headless {

struct Gl {
  EGLDisplay display = EGL_NO_DISPLAY;
  EGLContext context = EGL_NO_CONTEXT;
};

[[noreturn]] inline void Fail(const char* what) {
  std::fprintf(stderr, "FAIL: %s\n", what);
  std::exit(1);
}

template <typename F>
F Function(const char* name) {
  const auto found = reinterpret_cast<F>(eglGetProcAddress(name));
  if (found == nullptr) Fail(name);
  return found;
}

inline EGLDisplay OpenDisplay() {
  const auto get = Function<PFNEGLGETPLATFORMDISPLAYEXTPROC>("eglGetPlatformDisplayEXT");
  const auto query =
      reinterpret_cast<PFNEGLQUERYDEVICESEXTPROC>(eglGetProcAddress("eglQueryDevicesEXT"));
  EGLDeviceEXT devices[16];
  EGLint count = 0;
  if (query != nullptr && query(16, devices, &count) == EGL_TRUE) {
    for (EGLint i = 0; i < count; ++i) {
      const EGLDisplay display = get(EGL_PLATFORM_DEVICE_EXT, devices[i], nullptr);
      if (display != EGL_NO_DISPLAY && eglInitialize(display, nullptr, nullptr) == EGL_TRUE)
        return display;
    }
  }
  const EGLDisplay display = get(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, nullptr);
  if (display == EGL_NO_DISPLAY || eglInitialize(display, nullptr, nullptr) != EGL_TRUE)
    Fail("no EGL display");
  return display;
}

inline Gl OpenGl() {
  Gl gl;
  gl.display = OpenDisplay();
  eglBindAPI(EGL_OPENGL_API);
  const EGLint attributes[] = {EGL_CONTEXT_MAJOR_VERSION, 3, EGL_CONTEXT_MINOR_VERSION, 3,
                               EGL_NONE};
  gl.context = eglCreateContext(gl.display, EGL_NO_CONFIG_KHR, EGL_NO_CONTEXT, attributes);
  if (gl.context == EGL_NO_CONTEXT ||
      eglMakeCurrent(gl.display, EGL_NO_SURFACE, EGL_NO_SURFACE, gl.context) != EGL_TRUE) {
    Fail("no OpenGL 3.3 context");
  }
  return gl;
}

}  // namespace headless
