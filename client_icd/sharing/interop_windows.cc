// SPDX-License-Identifier: Apache-2.0
// The APIs that the driver shares with on Windows: OpenGL by WGL, Direct3D 9 to 11.
#include "client_icd/objects/extensions.h"
#include "client_icd/sharing/d3d/d3d_share.h"
#include "client_icd/sharing/d3d/dx9_share.h"
#include "client_icd/sharing/gl/gl_context.h"

namespace sluice::client {

std::span<const InteropExtension* const> InteropExtensions() {
  static constexpr const InteropExtension* kAll[] = {&sharing::kGlInterop, &sharing::kD3d10Interop,
                                                     &sharing::kD3d11Interop,
                                                     &sharing::kDx9Interop};
  return kAll;
}

}  // namespace sluice::client
