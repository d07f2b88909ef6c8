// SPDX-License-Identifier: Apache-2.0
// WGL as the application's process has it (gl_api.h): opengl32.dll is not linked and not loaded.
// Thread-safe: constant once found.
#pragma once

#include <windows.h>
//
#include <GL/glcorearb.h>
#include <GL/wglext.h>

#include "absl/status/statusor.h"
#include "broker/os/dynamic_library.h"

namespace sluice::client::sharing {

#define SLUICE_WGL_REQUIRED(X) \
  X(GetProcAddress)            \
  X(GetCurrentContext)         \
  X(CreateContext)             \
  X(DeleteContext)             \
  X(MakeCurrent)

struct WglApi {
#define SLUICE_WGL_MEMBER(name) decltype(&::wgl##name) name = nullptr;
  SLUICE_WGL_REQUIRED(SLUICE_WGL_MEMBER)
#undef SLUICE_WGL_MEMBER
  decltype(&::GetPixelFormat) GetPixelFormat = nullptr;  // GDI's.
  os::DynamicLibrary opengl;
  os::DynamicLibrary gdi;

  // NotFoundError if the process has no OpenGL.
  static absl::StatusOr<WglApi> Find();
  // A function of an extension; null if there is none. Windows looks it up in the driver of the
  // context that is current on this thread, and finds nothing without one.
  void* FindExtension(const char* function) const;
};

// WGL_ARB_create_context and WGL_ARB_pbuffer; a function that the driver lacks is null.
#define SLUICE_WGL_EXTENSIONS(X)                                    \
  X(PFNWGLCREATECONTEXTATTRIBSARBPROC, CreateContextAttribsARB)     \
  X(PFNWGLGETPIXELFORMATATTRIBIVARBPROC, GetPixelFormatAttribivARB) \
  X(PFNWGLCHOOSEPIXELFORMATARBPROC, ChoosePixelFormatARB)           \
  X(PFNWGLCREATEPBUFFERARBPROC, CreatePbufferARB)                   \
  X(PFNWGLGETPBUFFERDCARBPROC, GetPbufferDCARB)                     \
  X(PFNWGLRELEASEPBUFFERDCARBPROC, ReleasePbufferDCARB)             \
  X(PFNWGLDESTROYPBUFFERARBPROC, DestroyPbufferARB)

struct WglExtensions {
#define SLUICE_WGL_MEMBER(type, name) type name = nullptr;
  SLUICE_WGL_EXTENSIONS(SLUICE_WGL_MEMBER)
#undef SLUICE_WGL_MEMBER

  // With a context of the driver in question current on this thread.
  explicit WglExtensions(const WglApi& wgl);
  WglExtensions() = default;
  bool has_pbuffers() const {
    return GetPixelFormatAttribivARB != nullptr && ChoosePixelFormatARB != nullptr &&
           CreatePbufferARB != nullptr && GetPbufferDCARB != nullptr &&
           ReleasePbufferDCARB != nullptr && DestroyPbufferARB != nullptr;
  }
};

}  // namespace sluice::client::sharing
