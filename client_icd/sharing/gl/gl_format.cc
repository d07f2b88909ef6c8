// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/gl/gl_format.h"

#include <algorithm>
#include <iterator>

namespace sluice::client::sharing {
namespace {

// GL_BGRA_EXT of GL_EXT_texture_format_BGRA8888, an internal format of OpenGL ES alone.
constexpr GLenum kBgra = GL_BGRA;
// GL 1.0's names for internal formats: their numbers of components.
constexpr GLenum kFourComponents = 4;

constexpr GlFormat kFormats[] = {
    // Table 9.4. GL_RGBA8 may be CL_BGRA too: CL_RGBA is what every device has.
    {GL_RGBA8, GL_RGBA, GL_UNSIGNED_BYTE, {CL_RGBA, CL_UNORM_INT8}, 4},
    {GL_SRGB8_ALPHA8, GL_RGBA, GL_UNSIGNED_BYTE, {CL_sRGBA, CL_UNORM_INT8}, 4},
    {kBgra, GL_BGRA, GL_UNSIGNED_BYTE, {CL_BGRA, CL_UNORM_INT8}, 4},
    {GL_RGBA8I, GL_RGBA_INTEGER, GL_BYTE, {CL_RGBA, CL_SIGNED_INT8}, 4},
    {GL_RGBA16I, GL_RGBA_INTEGER, GL_SHORT, {CL_RGBA, CL_SIGNED_INT16}, 8},
    {GL_RGBA32I, GL_RGBA_INTEGER, GL_INT, {CL_RGBA, CL_SIGNED_INT32}, 16},
    {GL_RGBA8UI, GL_RGBA_INTEGER, GL_UNSIGNED_BYTE, {CL_RGBA, CL_UNSIGNED_INT8}, 4},
    {GL_RGBA16UI, GL_RGBA_INTEGER, GL_UNSIGNED_SHORT, {CL_RGBA, CL_UNSIGNED_INT16}, 8},
    {GL_RGBA32UI, GL_RGBA_INTEGER, GL_UNSIGNED_INT, {CL_RGBA, CL_UNSIGNED_INT32}, 16},
    {GL_RGBA8_SNORM, GL_RGBA, GL_BYTE, {CL_RGBA, CL_SNORM_INT8}, 4},
    {GL_RGBA16, GL_RGBA, GL_UNSIGNED_SHORT, {CL_RGBA, CL_UNORM_INT16}, 8},
    {GL_RGBA16_SNORM, GL_RGBA, GL_SHORT, {CL_RGBA, CL_SNORM_INT16}, 8},
    {GL_RGBA16F, GL_RGBA, GL_HALF_FLOAT, {CL_RGBA, CL_HALF_FLOAT}, 8},
    {GL_RGBA32F, GL_RGBA, GL_FLOAT, {CL_RGBA, CL_FLOAT}, 16},
    {GL_R8, GL_RED, GL_UNSIGNED_BYTE, {CL_R, CL_UNORM_INT8}, 1},
    {GL_R8_SNORM, GL_RED, GL_BYTE, {CL_R, CL_SNORM_INT8}, 1},
    {GL_R16, GL_RED, GL_UNSIGNED_SHORT, {CL_R, CL_UNORM_INT16}, 2},
    {GL_R16_SNORM, GL_RED, GL_SHORT, {CL_R, CL_SNORM_INT16}, 2},
    {GL_R16F, GL_RED, GL_HALF_FLOAT, {CL_R, CL_HALF_FLOAT}, 2},
    {GL_R32F, GL_RED, GL_FLOAT, {CL_R, CL_FLOAT}, 4},
    {GL_R8I, GL_RED_INTEGER, GL_BYTE, {CL_R, CL_SIGNED_INT8}, 1},
    {GL_R16I, GL_RED_INTEGER, GL_SHORT, {CL_R, CL_SIGNED_INT16}, 2},
    {GL_R32I, GL_RED_INTEGER, GL_INT, {CL_R, CL_SIGNED_INT32}, 4},
    {GL_R8UI, GL_RED_INTEGER, GL_UNSIGNED_BYTE, {CL_R, CL_UNSIGNED_INT8}, 1},
    {GL_R16UI, GL_RED_INTEGER, GL_UNSIGNED_SHORT, {CL_R, CL_UNSIGNED_INT16}, 2},
    {GL_R32UI, GL_RED_INTEGER, GL_UNSIGNED_INT, {CL_R, CL_UNSIGNED_INT32}, 4},
    {GL_RG8, GL_RG, GL_UNSIGNED_BYTE, {CL_RG, CL_UNORM_INT8}, 2},
    {GL_RG8_SNORM, GL_RG, GL_BYTE, {CL_RG, CL_SNORM_INT8}, 2},
    {GL_RG16, GL_RG, GL_UNSIGNED_SHORT, {CL_RG, CL_UNORM_INT16}, 4},
    {GL_RG16_SNORM, GL_RG, GL_SHORT, {CL_RG, CL_SNORM_INT16}, 4},
    {GL_RG16F, GL_RG, GL_HALF_FLOAT, {CL_RG, CL_HALF_FLOAT}, 4},
    {GL_RG32F, GL_RG, GL_FLOAT, {CL_RG, CL_FLOAT}, 8},
    {GL_RG8I, GL_RG_INTEGER, GL_BYTE, {CL_RG, CL_SIGNED_INT8}, 2},
    {GL_RG16I, GL_RG_INTEGER, GL_SHORT, {CL_RG, CL_SIGNED_INT16}, 4},
    {GL_RG32I, GL_RG_INTEGER, GL_INT, {CL_RG, CL_SIGNED_INT32}, 8},
    {GL_RG8UI, GL_RG_INTEGER, GL_UNSIGNED_BYTE, {CL_RG, CL_UNSIGNED_INT8}, 2},
    {GL_RG16UI, GL_RG_INTEGER, GL_UNSIGNED_SHORT, {CL_RG, CL_UNSIGNED_INT16}, 4},
    {GL_RG32UI, GL_RG_INTEGER, GL_UNSIGNED_INT, {CL_RG, CL_UNSIGNED_INT32}, 8},
    // cl_khr_gl_depth_images, section 9.9.2. 24 bits of depth are exact in a float.
    {GL_DEPTH_COMPONENT32F, GL_DEPTH_COMPONENT, GL_FLOAT, {CL_DEPTH, CL_FLOAT}, 4},
    {GL_DEPTH_COMPONENT16, GL_DEPTH_COMPONENT, GL_UNSIGNED_SHORT, {CL_DEPTH, CL_UNORM_INT16}, 2},
    {GL_DEPTH24_STENCIL8,
     GL_DEPTH_STENCIL,
     GL_UNSIGNED_INT_24_8,
     {CL_DEPTH_STENCIL, CL_UNORM_INT24},
     sizeof(cl_float)},
    {GL_DEPTH32F_STENCIL8,
     GL_DEPTH_STENCIL,
     GL_FLOAT_32_UNSIGNED_INT_24_8_REV,
     {CL_DEPTH_STENCIL, CL_FLOAT},
     sizeof(cl_float)},
};

bool Has(const GlComponents& have, GLint red, GLint green, GLint blue, GLint alpha) {
  return have.red == red && have.green == green && have.blue == blue && have.alpha == alpha;
}

}  // namespace

cl_image_format GlFormat::worker_cl() const {
  return has_stencil() ? cl_image_format{CL_DEPTH, CL_FLOAT} : cl;
}

bool GlFormat::is_depth() const { return cl.image_channel_order == CL_DEPTH || has_stencil(); }

bool GlFormat::has_stencil() const { return cl.image_channel_order == CL_DEPTH_STENCIL; }

bool GlFormat::is_integer() const {
  return cl.image_channel_data_type >= CL_SIGNED_INT8 &&
         cl.image_channel_data_type <= CL_UNSIGNED_INT32;
}

bool GlFormat::is_signed_normalised() const {
  return cl.image_channel_data_type == CL_SNORM_INT8 ||
         cl.image_channel_data_type == CL_SNORM_INT16;
}

const GlFormat* GlFormatsBegin() { return std::begin(kFormats); }
const GlFormat* GlFormatsEnd() { return std::end(kFormats); }

const GlFormat* FindGlFormat(GLenum internal_format) {
  const GlFormat* found =
      std::find_if(GlFormatsBegin(), GlFormatsEnd(), [internal_format](const GlFormat& format) {
        return format.internal_format == internal_format;
      });
  return found == GlFormatsEnd() ? nullptr : found;
}

const GlFormat* FindUnsizedGlFormat(GLenum internal_format, const GlComponents& components) {
  if (components.type != GL_UNSIGNED_NORMALIZED) return nullptr;
  switch (internal_format) {
    case GL_RGBA:
    case kFourComponents:
      if (Has(components, 8, 8, 8, 8)) return FindGlFormat(GL_RGBA8);
      return Has(components, 16, 16, 16, 16) ? FindGlFormat(GL_RGBA16) : nullptr;
    case GL_RG:
      if (Has(components, 8, 8, 0, 0)) return FindGlFormat(GL_RG8);
      return Has(components, 16, 16, 0, 0) ? FindGlFormat(GL_RG16) : nullptr;
    case GL_RED:
      if (Has(components, 8, 0, 0, 0)) return FindGlFormat(GL_R8);
      return Has(components, 16, 0, 0, 0) ? FindGlFormat(GL_R16) : nullptr;
    case GL_SRGB_ALPHA:
      return Has(components, 8, 8, 8, 8) ? FindGlFormat(GL_SRGB8_ALPHA8) : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace sluice::client::sharing
