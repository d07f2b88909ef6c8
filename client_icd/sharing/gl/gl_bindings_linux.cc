// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/gl/gl_bindings_linux.h"

#include "broker/os/dynamic_library.h"

namespace sluice::client::sharing {

absl::StatusOr<std::unique_ptr<GlBinding>> MakeGlBinding(const GlContextRef& ref) {
  switch (ref.kind) {
    case GlContextRef::Kind::kEgl:
      return MakeEglBinding(ref);
    case GlContextRef::Kind::kGlx:
      return MakeGlxBinding(ref);
    default:
      return absl::NotFoundError("the process has no such binding of OpenGL");
  }
}

void* FindInGlLibraries(const char* function) {
  for (const char* file : {"libGL.so.1", "libOpenGL.so.0", "libGLESv2.so.2"}) {
    absl::StatusOr<os::DynamicLibrary> library = os::DynamicLibrary::FindLoaded(file);
    if (!library.ok()) continue;
    void* address = library->Find(function);
    if (address == nullptr) continue;
    // The function must outlive this look: the reference to its library is kept.
    library->KeepForever();
    return address;
  }
  return nullptr;
}

}  // namespace sluice::client::sharing
