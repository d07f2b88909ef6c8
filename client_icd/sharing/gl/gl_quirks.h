// SPDX-License-Identifier: Apache-2.0
// Peculiarities of OpenGL drivers of the application's host, as named facts: the only file of the
// client that names a driver. Everything else asks GlCaps. Each fact says which version was seen to
// do it and when it may go. (The worker's own drivers: daemon/worker/driver_quirks.h.)
//
// These are kept without a fact, since they are right with every driver:
//
//   | where                          | driver     | what it would do otherwise                    |
//   | core/core.cc, flags            | rusticl 25 | no format is left with flags for the host     |
//   | core/exit_gate.h               | NVIDIA 580 | crashes at exit if our memory is imported     |
//   | core/shadow.cc, 1D arrays      | NVIDIA 580 | CL_INVALID_VALUE to copies to and from them   |
//   | egl/egl_binding.cc, IsImage    | Mesa 22.3  | swrast reads what is no image                 |
//   | egl/egl_event.cc               | Mesa 22.3  | waits for a fence that was freed              |
//   | gl/gl_blit.h                   | Mesa 22.3  | writes level 0 in place of the image's        |
//   | gl/gl_image.cc, depth          | NVIDIA 580 | lists depth formats without the extension     |
//   | gl/gl_read.cc, gl_read.h       | Mesa 22.3  | cuts off what is below 0; rounds depth down   |
//   | gl/gl_share.cc, Look           | Mesa 22.3  | does not look at a fence that is gone         |
//   | gl/gl_texture.cc, Bind         | Mesa 22.3  | answers in core profiles only                 |
//   | glx/glx_binding.cc             | Mesa 22.3  | finds no configuration by its id, or gives -1 |
//   | wgl/wgl_binding.cc             | Mesa, Wine | ends the process for single-buffered pbuffers |
//
// Immutable.
#pragma once

#include <string_view>

namespace sluice::client::sharing {

struct GlQuirks {
  // A texture's bytes lie in the order of its internal format's name, whatever it was made from.
  // (NVIDIA 580. No fault: it stays.)
  bool texels_as_named = false;
  // A new context is first current when the GPU has done what it was given. (NVIDIA 580. Until a
  // context is current at once while the GPU draws.)
  bool new_contexts_wait = false;
  // glEGLImageTargetTexture2DOES makes a texture that is not the image's sibling: one texel
  // everywhere, writes that nobody sees, no error. Refused rather than wrong. (NVIDIA 580, H200.
  // Until its storage way has been seen to be right.)
  bool egl_images_differ = false;
};

// `vendor`: GL_VENDOR.
inline GlQuirks GlQuirksOf(std::string_view vendor) {
  const bool is_nvidia = vendor.starts_with("NVIDIA");
  return {is_nvidia, is_nvidia, is_nvidia};
}

}  // namespace sluice::client::sharing
