// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/wgl/wgl_api.h"

#include <cstdint>
#include <utility>

namespace sluice::client::sharing {

absl::StatusOr<WglApi> WglApi::Find() {
  WglApi wgl;
  absl::StatusOr<os::DynamicLibrary> opengl = os::DynamicLibrary::FindLoaded("opengl32.dll");
  if (!opengl.ok()) return opengl.status();
  absl::StatusOr<os::DynamicLibrary> gdi = os::DynamicLibrary::FindLoaded("gdi32.dll");
  if (!gdi.ok()) return gdi.status();
  wgl.opengl = *std::move(opengl);
  wgl.gdi = *std::move(gdi);
#define SLUICE_WGL_LOAD(name)                                                    \
  wgl.name = reinterpret_cast<decltype(wgl.name)>(wgl.opengl.Find("wgl" #name)); \
  if (wgl.name == nullptr) return absl::NotFoundError("opengl32.dll here has no wgl" #name);
  SLUICE_WGL_REQUIRED(SLUICE_WGL_LOAD)
#undef SLUICE_WGL_LOAD
  wgl.GetPixelFormat =
      reinterpret_cast<decltype(wgl.GetPixelFormat)>(wgl.gdi.Find("GetPixelFormat"));
  if (wgl.GetPixelFormat == nullptr) return absl::NotFoundError("no GetPixelFormat");
  return wgl;
}

void* WglApi::FindExtension(const char* function) const {
  const auto address = reinterpret_cast<intptr_t>(GetProcAddress(function));
  // Some drivers say "none" by 1, 2, 3 or -1.
  const bool is_none = address >= -1 && address <= 3;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): looked at as a number above.
  return is_none ? nullptr : reinterpret_cast<void*>(address);
}

WglExtensions::WglExtensions(const WglApi& wgl) {
#define SLUICE_WGL_LOAD(type, name) name = reinterpret_cast<type>(wgl.FindExtension("wgl" #name));
  SLUICE_WGL_EXTENSIONS(SLUICE_WGL_LOAD)
#undef SLUICE_WGL_LOAD
}

}  // namespace sluice::client::sharing
