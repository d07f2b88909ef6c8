// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/glx/glx_api.h"

#include <utility>

namespace sluice::client::sharing {
namespace {

constexpr const char* kGlxLibraries[] = {"libGL.so.1", "libGLX.so.0"};

template <typename Function>
bool Load(const os::DynamicLibrary& library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(library.Find(name));
  return *function != nullptr;
}

}  // namespace

absl::StatusOr<GlxApi> GlxApi::Find() {
  absl::StatusOr<os::DynamicLibrary> x11 = os::DynamicLibrary::FindLoaded("libX11.so.6");
  if (!x11.ok()) return x11.status();
  for (const char* file : kGlxLibraries) {
    absl::StatusOr<os::DynamicLibrary> library = os::DynamicLibrary::FindLoaded(file);
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
    absl::StatusOr<os::DynamicLibrary> x11_xcb = os::DynamicLibrary::FindLoaded("libX11-xcb.so.1");
    absl::StatusOr<os::DynamicLibrary> xcb = os::DynamicLibrary::FindLoaded("libxcb.so.1");
    if (x11_xcb.ok() && xcb.ok() && Load(*x11_xcb, "XGetXCBConnection", &glx.GetXcbConnection) &&
        Load(*xcb, "xcb_get_setup", &glx.GetXcbSetup)) {
      glx.x11_xcb = *std::move(x11_xcb);
      glx.xcb = *std::move(xcb);
    }
    glx.glx = *std::move(library);
    glx.x11 = *std::move(x11);
    return glx;
  }
  return absl::NotFoundError("the process has no GLX");
}

}  // namespace sluice::client::sharing
