// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/gl_api.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace sluice::sharing {
namespace {

// Where GL's own functions are, for an EGL or GLX whose lookup gives only those of extensions.
constexpr const char* kGlLibraries[] = {"libGL.so.1", "libOpenGL.so.0", "libGLESv2.so.2"};
constexpr const char* kGlxLibraries[] = {"libGL.so.1", "libGLX.so.0"};

void* FindInGlLibraries(const std::string& name) {
  for (const char* file : kGlLibraries) {
    absl::StatusOr<DynamicLibrary> library = DynamicLibrary::FindLoaded(file);
    if (!library.ok()) continue;
    void* address = library->Find(name.c_str());
    if (address == nullptr) continue;
    // The function must outlive this look: the reference to its library is kept.
    library->KeepForever();
    return address;
  }
  return nullptr;
}

template <typename Function>
bool Load(const DynamicLibrary& library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(library.Find(name));
  return *function != nullptr;
}

}  // namespace

absl::StatusOr<GlFunctions> LoadGlFunctions(const GlLookup& lookup) {
  GlFunctions gl;
  const auto find = [&lookup](const char* name) {
    void* address = lookup(name);
    return address != nullptr ? address : FindInGlLibraries(name);
  };
#define SLUICE_GL_LOAD_REQUIRED(type, name)           \
  gl.name = reinterpret_cast<type>(find("gl" #name)); \
  if (gl.name == nullptr) return absl::NotFoundError("OpenGL here has no gl" #name);
#define SLUICE_GL_LOAD_OPTIONAL(type, name) gl.name = reinterpret_cast<type>(find("gl" #name));
  SLUICE_GL_REQUIRED(SLUICE_GL_LOAD_REQUIRED)
  SLUICE_GL_OPTIONAL(SLUICE_GL_LOAD_OPTIONAL)
#undef SLUICE_GL_LOAD_REQUIRED
#undef SLUICE_GL_LOAD_OPTIONAL
  return gl;
}

absl::StatusOr<EglApi> EglApi::Find() {
  EglApi egl;
  absl::StatusOr<DynamicLibrary> library = DynamicLibrary::FindLoaded("libEGL.so.1");
  if (!library.ok()) return library.status();
  egl.library = *std::move(library);
#define SLUICE_EGL_LOAD(type, name) \
  if (!Load(egl.library, "egl" #name, &egl.name)) return absl::NotFoundError("no egl" #name);
  SLUICE_EGL_REQUIRED(SLUICE_EGL_LOAD)
#undef SLUICE_EGL_LOAD
  return egl;
}

absl::StatusOr<GlxApi> GlxApi::Find() {
  absl::StatusOr<DynamicLibrary> x11 = DynamicLibrary::FindLoaded("libX11.so.6");
  if (!x11.ok()) return x11.status();
  for (const char* file : kGlxLibraries) {
    absl::StatusOr<DynamicLibrary> library = DynamicLibrary::FindLoaded(file);
    if (!library.ok()) continue;
    GlxApi glx;
    const bool whole = Load(*library, "glXGetProcAddressARB", &glx.GetProcAddressARB) &&
                       Load(*library, "glXQueryContext", &glx.QueryContext) &&
                       Load(*library, "glXGetFBConfigs", &glx.GetFBConfigs) &&
                       Load(*library, "glXGetFBConfigAttrib", &glx.GetFBConfigAttrib) &&
                       Load(*library, "glXCreateNewContext", &glx.CreateNewContext) &&
                       Load(*library, "glXDestroyContext", &glx.DestroyContext) &&
                       Load(*library, "glXCreatePbuffer", &glx.CreatePbuffer) &&
                       Load(*library, "glXDestroyPbuffer", &glx.DestroyPbuffer) &&
                       Load(*library, "glXMakeContextCurrent", &glx.MakeContextCurrent) &&
                       Load(*library, "glXQueryExtensionsString", &glx.QueryExtensionsString) &&
                       Load(*library, "glXGetCurrentContext", &glx.GetCurrentContext) &&
                       Load(*x11, "XQueryExtension", &glx.QueryExtension) &&
                       Load(*x11, "XAddExtension", &glx.AddExtension) &&
                       Load(*x11, "XESetCloseDisplay", &glx.ESetCloseDisplay) &&
                       Load(*x11, "XSetErrorHandler", &glx.SetErrorHandler) &&
                       Load(*x11, "XSync", &glx.Sync) && Load(*x11, "XFree", &glx.Free);
    if (!whole) continue;
    glx.glx = *std::move(library);
    glx.x11 = *std::move(x11);
    return glx;
  }
  return absl::NotFoundError("the process has no GLX");
}

bool HasWord(const char* list, std::string_view word) {
  std::string_view left = list == nullptr ? std::string_view() : std::string_view(list);
  while (!left.empty()) {
    const size_t end = left.find(' ');
    if (left.substr(0, end) == word) return true;
    if (end == std::string_view::npos) return false;
    left.remove_prefix(end + 1);
  }
  return false;
}

}  // namespace sluice::sharing
