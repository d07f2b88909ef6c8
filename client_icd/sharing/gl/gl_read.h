// SPDX-License-Identifier: Apache-2.0
// Reading the framebuffer that is bound for reading, in both APIs. OpenGL converts to whatever is
// asked for. OpenGL ES reads a format as it is only if its implementation chose to, else as RGBA of
// the widest type of that kind, from which the elements are then picked out. GL thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "client_icd/sharing/gl/gl_format.h"
#include "client_icd/sharing/gl/gl_share.h"

namespace sluice::client::sharing {

struct GlRead {
  GLenum format = 0;
  GLenum type = 0;
  size_t element_bytes = 0;
  bool exact = true;  // The elements are as OpenCL wants them.
};

// In the format's own elements.
GlRead DirectGlRead(const GlFormat& format);

// For the framebuffer that is bound; nothing if elements of this format cannot be read without
// loss.
std::optional<GlRead> ChooseGlRead(GlContexts& contexts, const GlFormat& format);

// `count` elements that were read in a wider way to elements of the format.
void NarrowElements(const GlFormat& format, const GlRead& read, const uint8_t* wide, size_t count,
                    uint8_t* out);

// Split what GL reads of a format with stencil into floats and stencils, and join them to the same
// bits. Not left to GL, which keeps the stencil where it blits depth alone, but not the depth. A
// driver may make floats of 24 bits and round them down, so that all that a kernel leaves alone
// would change.
void SplitDepthStencils(const GlFormat& format, const uint8_t* in, size_t count, uint8_t* floats,
                        uint8_t* stencils);
void JoinDepthStencils(const GlFormat& format, const uint8_t* floats, const uint8_t* stencils,
                       size_t count, uint8_t* out);

// A float that was a half before, exactly; others are rounded towards zero.
uint16_t FloatToHalf(float value);

}  // namespace sluice::client::sharing
