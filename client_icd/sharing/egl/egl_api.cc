// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/egl/egl_api.h"

#include <utility>

namespace sluice::client::sharing {

absl::StatusOr<EglApi> EglApi::Find() {
  EglApi egl;
  absl::StatusOr<os::DynamicLibrary> library = os::DynamicLibrary::FindLoaded("libEGL.so.1");
  if (!library.ok()) return library.status();
  egl.library = *std::move(library);
#define SLUICE_EGL_LOAD(type, name)                                 \
  egl.name = reinterpret_cast<type>(egl.library.Find("egl" #name)); \
  if (egl.name == nullptr) return absl::NotFoundError("no egl" #name);
  SLUICE_EGL_REQUIRED(SLUICE_EGL_LOAD)
#undef SLUICE_EGL_LOAD
  return egl;
}

}  // namespace sluice::client::sharing
