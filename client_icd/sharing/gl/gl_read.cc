// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/gl/gl_read.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "proto/image_format.h"

namespace sluice::client::sharing {
namespace {

size_t Channels(const GlFormat& format) {
  switch (format.cl.image_channel_order) {
    case CL_R:
    case CL_DEPTH:
      return 1;
    case CL_RG:
      return 2;
    default:
      return 4;
  }
}

// OpenGL ES 3.1, section 16.1.2, and EXT_texture_norm16: what may be read from every framebuffer of
// that kind.
std::optional<GlRead> Widest(const GlFormat& format) {
  switch (format.cl.image_channel_data_type) {
    case CL_UNORM_INT8:
      return GlRead{GL_RGBA, GL_UNSIGNED_BYTE, 4, false};
    case CL_UNORM_INT16:
      return GlRead{GL_RGBA, GL_UNSIGNED_SHORT, 8, false};
    case CL_HALF_FLOAT:
    case CL_FLOAT:
      return GlRead{GL_RGBA, GL_FLOAT, 16, false};
    case CL_SIGNED_INT8:
    case CL_SIGNED_INT16:
    case CL_SIGNED_INT32:
      return GlRead{GL_RGBA_INTEGER, GL_INT, 16, false};
    case CL_UNSIGNED_INT8:
    case CL_UNSIGNED_INT16:
    case CL_UNSIGNED_INT32:
      return GlRead{GL_RGBA_INTEGER, GL_UNSIGNED_INT, 16, false};
    default:
      return std::nullopt;
  }
}

// GL_UNSIGNED_INT_24_8 is one word, depth above stencil; GL_FLOAT_32_UNSIGNED_INT_24_8_REV a float
// and a word with the stencil in its lowest bits.
constexpr int kStencilBits = 8;
constexpr double kMaxDepth24 = 0xffffff;

bool HasDepth24(const GlFormat& format) {
  return format.cl.image_channel_data_type == CL_UNORM_INT24;
}

template <typename T>
T Load(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

template <typename T>
void Put(T value, uint8_t* to) {
  std::memcpy(to, &value, sizeof(value));
}

// One channel, from the wide type to the format's own.
void NarrowChannel(cl_channel_type type, const uint8_t* wide, uint8_t* out) {
  switch (type) {
    case CL_UNORM_INT8:
      *out = *wide;
      break;
    case CL_UNORM_INT16:
      Put(Load<uint16_t>(wide), out);
      break;
    case CL_HALF_FLOAT:
      Put(FloatToHalf(Load<float>(wide)), out);
      break;
    case CL_SIGNED_INT8:
    case CL_UNSIGNED_INT8:
      Put(static_cast<uint8_t>(Load<uint32_t>(wide)), out);
      break;
    case CL_SIGNED_INT16:
    case CL_UNSIGNED_INT16:
      Put(static_cast<uint16_t>(Load<uint32_t>(wide)), out);
      break;
    default:
      Put(Load<uint32_t>(wide), out);
      break;
  }
}

}  // namespace

GlRead DirectGlRead(const GlFormat& format) {
  return {format.transfer_format, format.transfer_type, wire::ElementBytes(format.cl),
          !format.has_stencil()};
}

std::optional<GlRead> ChooseGlRead(GlContexts& contexts, const GlFormat& format) {
  const GlRead direct = DirectGlRead(format);
  if (!contexts.caps().version.es) return direct;
  // OpenGL ES reads no depth, and has no glClampColor to keep what is below zero (a driver may
  // cut it off).
  if (format.is_depth() || format.is_signed_normalised()) return std::nullopt;
  const GlFunctions& gl = contexts.gl();
  GLint chosen_format = 0;
  GLint chosen_type = 0;
  gl.GetIntegerv(GL_IMPLEMENTATION_COLOR_READ_FORMAT, &chosen_format);
  gl.GetIntegerv(GL_IMPLEMENTATION_COLOR_READ_TYPE, &chosen_type);
  if (static_cast<GLenum>(chosen_format) == direct.format &&
      static_cast<GLenum>(chosen_type) == direct.type) {
    return direct;
  }
  std::optional<GlRead> widest = Widest(format);
  if (widest && widest->format == direct.format && widest->type == direct.type) return direct;
  return widest;
}

uint16_t FloatToHalf(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const int exponent = static_cast<int>((bits >> 23) & 0xff) - 127;
  const uint32_t fraction = bits & 0x7fffff;
  if (exponent == 128) {  // Infinity, or not a number: which stays one.
    const uint32_t payload = fraction == 0 ? 0 : (fraction >> 13) | (fraction < 0x2000 ? 1 : 0);
    return static_cast<uint16_t>(sign | 0x7c00 | payload);
  }
  if (exponent > 15) return static_cast<uint16_t>(sign | 0x7bff);
  if (exponent >= -14)
    return static_cast<uint16_t>(sign | ((exponent + 15) << 10) | (fraction >> 13));
  if (exponent < -24) return sign;
  return static_cast<uint16_t>(sign | ((fraction | 0x800000) >> (-1 - exponent)));
}

void SplitDepthStencils(const GlFormat& format, const uint8_t* in, size_t count, uint8_t* floats,
                        uint8_t* stencils) {
  const size_t step = wire::ElementBytes(format.cl);
  for (size_t i = 0; i < count; ++i, in += step, floats += sizeof(float)) {
    const uint32_t word = Load<uint32_t>(in + step - sizeof(uint32_t));
    stencils[i] = static_cast<uint8_t>(word);
    Put(HasDepth24(format) ? static_cast<float>((word >> kStencilBits) / kMaxDepth24)
                           : Load<float>(in),
        floats);
  }
}

void JoinDepthStencils(const GlFormat& format, const uint8_t* floats, const uint8_t* stencils,
                       size_t count, uint8_t* out) {
  const size_t step = wire::ElementBytes(format.cl);
  for (size_t i = 0; i < count; ++i, out += step, floats += sizeof(float)) {
    const float depth = Load<float>(floats);
    uint32_t word = stencils[i];
    if (HasDepth24(format)) {
      // Not a number is 0, as what is below.
      const double within = depth > 0.0f ? std::min<double>(depth, 1.0) : 0.0;
      word |= static_cast<uint32_t>(std::lround(within * kMaxDepth24)) << kStencilBits;
    } else {
      Put(depth, out);
    }
    Put(word, out + step - sizeof(uint32_t));
  }
}

void NarrowElements(const GlFormat& format, const GlRead& read, const uint8_t* wide, size_t count,
                    uint8_t* out) {
  const size_t channels = Channels(format);
  const size_t narrow_bytes = format.element_bytes / channels;
  const size_t wide_bytes = read.element_bytes / 4;
  // The one order of four channels that is not red first.
  const bool swapped = format.cl.image_channel_order == CL_BGRA;
  for (size_t i = 0; i < count; ++i) {
    for (size_t channel = 0; channel < channels; ++channel) {
      const size_t from = swapped && channel != 3 ? 2 - channel : channel;
      NarrowChannel(format.cl.image_channel_data_type, wide + from * wide_bytes,
                    out + channel * narrow_bytes);
    }
    wide += read.element_bytes;
    out += format.element_bytes;
  }
}

}  // namespace sluice::client::sharing
