// SPDX-License-Identifier: Apache-2.0
// The APIs that the driver shares with on Linux: OpenGL by EGL and GLX, EGL, gralloc.
#include "client_icd/objects/extensions.h"
#include "client_icd/sharing/gl/gl_context.h"
#include "client_icd/sharing/memory/gralloc.h"

namespace sluice::client {
namespace {

// All of EGL's functions have slots in the dispatch table (sharing/egl).
constexpr InteropExtension::Name kEglNames[] = {{"cl_khr_egl_image"}, {"cl_khr_egl_event"}};
constexpr InteropExtension kEglInterop = {.names = kEglNames};

}  // namespace

std::span<const InteropExtension* const> InteropExtensions() {
  static constexpr const InteropExtension* kAll[] = {&sharing::kGlInterop, &kEglInterop,
                                                     &sharing::kGrallocInterop};
  return kAll;
}

}  // namespace sluice::client
