// SPDX-License-Identifier: Apache-2.0
// EGL as the application's process has it (gl_api.h). Thread-safe: constant once found.
#pragma once

// Nothing of X11 in the declarations: its types are opaque here.
#ifndef EGL_NO_X11
#define EGL_NO_X11 1
#endif
#include <EGL/egl.h>
#include <EGL/eglext.h>

#include "absl/status/statusor.h"
#include "broker/os/dynamic_library.h"

namespace sluice::client::sharing {

#define SLUICE_EGL_REQUIRED(X)                            \
  X(PFNEGLGETPROCADDRESSPROC, GetProcAddress)             \
  X(PFNEGLQUERYSTRINGPROC, QueryString)                   \
  X(PFNEGLGETERRORPROC, GetError)                         \
  X(PFNEGLBINDAPIPROC, BindAPI)                           \
  X(PFNEGLQUERYCONTEXTPROC, QueryContext)                 \
  X(PFNEGLCHOOSECONFIGPROC, ChooseConfig)                 \
  X(PFNEGLGETCONFIGATTRIBPROC, GetConfigAttrib)           \
  X(PFNEGLCREATECONTEXTPROC, CreateContext)               \
  X(PFNEGLDESTROYCONTEXTPROC, DestroyContext)             \
  X(PFNEGLCREATEPBUFFERSURFACEPROC, CreatePbufferSurface) \
  X(PFNEGLDESTROYSURFACEPROC, DestroySurface)             \
  X(PFNEGLMAKECURRENTPROC, MakeCurrent)                   \
  X(PFNEGLRELEASETHREADPROC, ReleaseThread)               \
  X(PFNEGLGETCURRENTCONTEXTPROC, GetCurrentContext)       \
  X(PFNEGLGETCURRENTDISPLAYPROC, GetCurrentDisplay)

struct EglApi {
#define SLUICE_EGL_MEMBER(type, name) type name = nullptr;
  SLUICE_EGL_REQUIRED(SLUICE_EGL_MEMBER)
#undef SLUICE_EGL_MEMBER
  os::DynamicLibrary library;

  // NotFoundError if the process has no EGL.
  static absl::StatusOr<EglApi> Find();
};

}  // namespace sluice::client::sharing
