// SPDX-License-Identifier: Apache-2.0
// Formats that table 9.4 (OpenCL 2.2 Extension Specification, section 9.4) does not name as they
// are asked for: those without sizes, and those of buffer textures.
#include <cstdio>
#include <string>

#include "tests/sharing/gl_fixture.h"

namespace sluice::gltest {
namespace {

class GlFormats : public WithGl {
 protected:
  // GL's allocation for the bound texture's components: their bits, and of all the same.
  std::vector<GLint> Bits(GLenum target) {
    std::vector<GLint> bits;
    for (const GLenum name : {GL_TEXTURE_RED_SIZE, GL_TEXTURE_GREEN_SIZE, GL_TEXTURE_BLUE_SIZE,
                              GL_TEXTURE_ALPHA_SIZE}) {
      bits.push_back(0);
      gl().GetTexLevelParameteriv(target, 0, name, &bits.back());
    }
    return bits;
  }
};

// A texture of an internal format without sizes has the format of what GL allocated: table 9.4 asks
// for "at least the number of bits/component actually allocated by OpenGL". An image without a
// format of the table's components and bits is refused.
TEST_P(GlFormats, UnsizedFormats) {
  if (gl().GetTexLevelParameteriv == nullptr) GTEST_SKIP() << "GL does not say what it allocated";
  struct Case {
    GLenum internal, format, type;
    size_t texel_bytes;  // As they are uploaded.
    size_t channels;     // Of an image, 0 if the table has none.
    cl_channel_order order;
    bool in_es;
    const char* name;
  };
  constexpr size_t kSide = 8;
  const Case cases[] = {
      {GL_RGBA, GL_RGBA, GL_UNSIGNED_BYTE, 4, 4, CL_RGBA, true, "GL_RGBA"},
      {GL_RGBA, GL_RGBA, GL_UNSIGNED_SHORT, 8, 4, CL_RGBA, false, "GL_RGBA of shorts"},
      {GL_RGBA, GL_RGBA, GL_UNSIGNED_SHORT_4_4_4_4, 2, 4, CL_RGBA, true, "GL_RGBA of 4444"},
      {4, GL_RGBA, GL_UNSIGNED_BYTE, 4, 4, CL_RGBA, false, "4"},
      {GL_RG, GL_RG, GL_UNSIGNED_BYTE, 2, 2, CL_RG, false, "GL_RG"},
      {GL_RED, GL_RED, GL_UNSIGNED_BYTE, 1, 1, CL_R, false, "GL_RED"},
      {GL_RED, GL_RED, GL_UNSIGNED_SHORT, 2, 1, CL_R, false, "GL_RED of shorts"},
      {GL_SRGB_ALPHA, GL_RGBA, GL_UNSIGNED_BYTE, 4, 4, CL_sRGBA, false, "GL_SRGB_ALPHA"},
      {GL_RGB, GL_RGB, GL_UNSIGNED_BYTE, 3, 0, 0, true, "GL_RGB"},
      {GL_ALPHA, GL_ALPHA, GL_UNSIGNED_BYTE, 1, 0, 0, true, "GL_ALPHA"},
      {0x1909, 0x1909, GL_UNSIGNED_BYTE, 1, 0, 0, true, "GL_LUMINANCE"},
      {GL_DEPTH_COMPONENT, GL_DEPTH_COMPONENT, GL_UNSIGNED_INT, 4, 0, 0, true,
       "GL_DEPTH_COMPONENT"},
  };
  for (const Case& one : cases) {
    if (es() && !one.in_es) continue;
    SCOPED_TRACE(one.name);
    std::vector<uint8_t> bytes(kSide * kSide * one.texel_bytes);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 37 + 5);
    GLuint texture = 0;
    gl().GenTextures(1, &texture);
    gl().BindTexture(GL_TEXTURE_2D, texture);
    gl().TexImage2D(GL_TEXTURE_2D, 0, static_cast<GLint>(one.internal), kSide, kSide, 0, one.format,
                    one.type, bytes.data());
    gl().TexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAX_LEVEL, 0);
    const GLenum error_of_gl = gl().GetError();
    const std::vector<GLint> bits = Bits(GL_TEXTURE_2D);
    GLint internal = 0;
    gl().GetTexLevelParameteriv(GL_TEXTURE_2D, 0, GL_TEXTURE_INTERNAL_FORMAT, &internal);
    gl().BindTexture(GL_TEXTURE_2D, 0);
    if (error_of_gl != GL_NO_ERROR || gl().GetError() != GL_NO_ERROR) {
      std::printf("%s: GL has no such texture\n", one.name);
      continue;
    }
    std::printf("%s: internal format %#x of %d, %d, %d and %d bits\n", one.name,
                static_cast<unsigned>(internal), bits[0], bits[1], bits[2], bits[3]);
    Format format = {one.internal, one.format, GL_UNSIGNED_BYTE, {one.order, CL_UNORM_INT8},
                     one.channels, one.name};
    bool shared = one.channels != 0;
    for (size_t i = 0; i < 4; ++i)
      shared = shared && (i < one.channels ? bits[i] == bits[0] : bits[i] == 0);
    if (bits[0] == 16) {
      format.type = GL_UNSIGNED_SHORT;
      format.cl.image_channel_data_type = CL_UNORM_INT16;
      format.bytes *= 2;
    }
    shared = shared && (bits[0] == 8 || bits[0] == 16) &&
             DeviceHas(format, CL_MEM_OBJECT_IMAGE2D, CL_MEM_READ_WRITE) &&
             (!es() || IsRenderable(texture));
    if (!shared) {
      EXPECT_CREATE(
          "clCreateFromGLTexture.unsized_no_format", CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
          clCreateFromGLTexture(context(), CL_MEM_READ_WRITE, GL_TEXTURE_2D, 0, texture, error));
      continue;
    }
    const Own<cl_mem> image =
        MAKE("clCreateFromGLTexture.unsized",
             clCreateFromGLTexture(context(), CL_MEM_READ_WRITE, GL_TEXTURE_2D, 0, texture, error));
    ASSERT_NE(image.get(), nullptr);
    cl_image_format seen = {};
    clGetImageInfo(image, CL_IMAGE_FORMAT, sizeof(seen), &seen, nullptr);
    EXPECT_EQ(seen.image_channel_order, one.order);
    EXPECT_EQ(seen.image_channel_data_type, format.cl.image_channel_data_type);
    const std::vector<uint8_t> before =
        ReadTexture(GL_TEXTURE_2D, texture, 0, format, kSide, kSide, 1);
    const std::vector<uint8_t> after(before.rbegin(), before.rend());
    ASSERT_EQ(Acquire(image), CL_SUCCESS);
    EXPECT_EQ(ReadImage(image, kSide, kSide, 1, format.bytes), before);
    WriteImage(image, kSide, kSide, 1, after);
    ASSERT_EQ(Release(image), CL_SUCCESS);
    EXPECT_EQ(ReadTexture(GL_TEXTURE_2D, texture, 0, format, kSide, kSide, 1), after);
  }
}

// OpenGL ES: textures of floats that are asked for without sizes (GL_OES_texture_float) are shared
// as those with sizes are, though no framebuffer need take them (Mesa's does not); each level,
// whatever the filters are.
TEST_P(GlFormats, FloatsWithoutSizes) {
  if (!es()) GTEST_SKIP() << "OpenGL has no formats of floats without sizes";
  constexpr size_t kSide = 24;
  const Format& format = FormatOf(GL_RGBA32F);
  for (const GLenum target : {GL_TEXTURE_2D, GL_TEXTURE_2D_ARRAY, GL_TEXTURE_3D}) {
    SCOPED_TRACE(target);
    const bool layers = target != GL_TEXTURE_2D;
    GLuint texture = 0;
    gl().GenTextures(1, &texture);
    gl().BindTexture(target, texture);
    std::vector<std::vector<uint8_t>> levels;
    for (GLint level = 0; level < 2; ++level) {
      const GLsizei side = kSide >> level;
      const GLsizei depth = target == GL_TEXTURE_3D ? 4 >> level : layers ? 3 : 1;
      levels.push_back(Pattern(format, static_cast<size_t>(side * side * depth), level + 7));
      if (layers)
        gl().TexImage3D(target, level, GL_RGBA, side, side, depth, 0, GL_RGBA, GL_FLOAT,
                        levels.back().data());
      else
        gl().TexImage2D(target, level, GL_RGBA, side, side, 0, GL_RGBA, GL_FLOAT,
                        levels.back().data());
    }
    gl().TexParameteri(target, GL_TEXTURE_MAX_LEVEL, 1);
    ASSERT_EQ(gl().GetError(), GL_NO_ERROR) << "no GL_OES_texture_float";
    const auto share = [&](GLint level) {
      return MAKE(
          "clCreateFromGLTexture.unsized_floats",
          clCreateFromGLTexture(context(), CL_MEM_READ_WRITE, target, level, texture, error));
    };
    for (GLint level = 0; level < 2; ++level) {
      const std::vector<uint8_t>& before = levels[static_cast<size_t>(level)];
      const size_t side = kSide >> level;
      const size_t depth = before.size() / (side * side * format.bytes);
      const Own<cl_mem> image = share(level);
      ASSERT_NE(image.get(), nullptr);
      ASSERT_EQ(Acquire(image), CL_SUCCESS);
      EXPECT_EQ(ReadImage(image, side, side, depth, format.bytes), before);
      const std::vector<uint8_t> after = Pattern(format, side * side * depth, 99);
      WriteImage(image, side, side, depth, after);
      ASSERT_EQ(Release(image), CL_SUCCESS);
      const Own<cl_mem> again = share(level);
      ASSERT_EQ(Acquire(again), CL_SUCCESS);
      EXPECT_EQ(ReadImage(again, side, side, depth, format.bytes), after);
      ASSERT_EQ(Release(again), CL_SUCCESS);
    }
  }
}

// Section 9.4.3: CL_INVALID_IMAGE_FORMAT_DESCRIPTOR if the internal format does not map to one of
// OpenCL's, as all that table 9.4 leaves out; CL_INVALID_OPERATION if the texture has a border,
// where GL still has such.
TEST_P(GlFormats, OthersAreRefused) {
  struct Case {
    GLenum internal, format, type;
  };
  const Case cases[] = {
      {GL_RGB8, GL_RGB, GL_UNSIGNED_BYTE},
      {GL_SRGB8, GL_RGB, GL_UNSIGNED_BYTE},
      {GL_RGB8_SNORM, GL_RGB, GL_BYTE},
      {GL_RGB8UI, GL_RGB_INTEGER, GL_UNSIGNED_BYTE},
      {GL_RGB32I, GL_RGB_INTEGER, GL_INT},
      {GL_RGB16F, GL_RGB, GL_HALF_FLOAT},
      {GL_RGB32F, GL_RGB, GL_FLOAT},
      {GL_RGB565, GL_RGB, GL_UNSIGNED_SHORT_5_6_5},
      {GL_RGBA4, GL_RGBA, GL_UNSIGNED_SHORT_4_4_4_4},
      {GL_RGB5_A1, GL_RGBA, GL_UNSIGNED_SHORT_5_5_5_1},
      {GL_RGB10_A2, GL_RGBA, GL_UNSIGNED_INT_2_10_10_10_REV},
      {GL_RGB10_A2UI, GL_RGBA_INTEGER, GL_UNSIGNED_INT_2_10_10_10_REV},
      {GL_R11F_G11F_B10F, GL_RGB, GL_UNSIGNED_INT_10F_11F_11F_REV},
      {GL_RGB9_E5, GL_RGB, GL_UNSIGNED_INT_5_9_9_9_REV},
      {GL_DEPTH_COMPONENT24, GL_DEPTH_COMPONENT, GL_UNSIGNED_INT},
  };
  const auto make = [&](const Case& one, GLint border) {
    const GLsizei side = 8 + 2 * border;
    GLuint texture = 0;
    gl().GenTextures(1, &texture);
    gl().BindTexture(GL_TEXTURE_2D, texture);
    gl().TexImage2D(GL_TEXTURE_2D, 0, static_cast<GLint>(one.internal), side, side, border,
                    one.format, one.type, nullptr);
    gl().TexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAX_LEVEL, 0);
    return texture;
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(testing::Message() << std::hex << one.internal);
    const GLuint texture = make(one, 0);
    gl().BindTexture(GL_TEXTURE_2D, 0);
    ASSERT_EQ(gl().GetError(), static_cast<GLenum>(GL_NO_ERROR));
    EXPECT_CREATE(
        "clCreateFromGLTexture.other_format", CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
        clCreateFromGLTexture(context(), CL_MEM_READ_ONLY, GL_TEXTURE_2D, 0, texture, error));
  }
  if (es()) return;
  constexpr GLenum kTextureBorder = 0x1005;  // Core profiles have it not.
  const GLuint texture = make({GL_RGBA8, GL_RGBA, GL_UNSIGNED_BYTE}, 1);
  GLint border = 0;
  gl().GetTexLevelParameteriv(GL_TEXTURE_2D, 0, kTextureBorder, &border);
  gl().BindTexture(GL_TEXTURE_2D, 0);
  if (gl().GetError() != GL_NO_ERROR || border == 0) {
    std::puts("left out: a border, which this GL has not");
    return;
  }
  EXPECT_CREATE(
      "clCreateFromGLTexture.border", CL_INVALID_OPERATION,
      clCreateFromGLTexture(context(), CL_MEM_READ_ONLY, GL_TEXTURE_2D, 0, texture, error));
}

// "If texture_target is GL_TEXTURE_BUFFER, miplevel must be 0" (section 9.4.3); a buffer texture
// needs a buffer, and a format of the table: three components have none.
TEST_P(GlFormats, LevelsOfABufferTexture) {
  if (gl().TexBuffer == nullptr) GTEST_SKIP() << "no buffer textures";
  const GLuint buffer = Buffer(nullptr, 768);
  GLuint textures[3] = {};
  gl().GenTextures(3, textures);
  for (const GLuint texture : textures) {
    gl().BindTexture(GL_TEXTURE_BUFFER, texture);
    if (texture == textures[0]) gl().TexBuffer(GL_TEXTURE_BUFFER, GL_RGBA8, buffer);
    if (texture == textures[1]) gl().TexBuffer(GL_TEXTURE_BUFFER, GL_RGB32F, buffer);
  }
  gl().BindTexture(GL_TEXTURE_BUFFER, 0);
  if (gl().GetError() != GL_NO_ERROR) GTEST_SKIP() << "no buffer textures of three components";
  const auto create = [&](GLint level, GLuint texture, cl_int* error) {
    return clCreateFromGLTexture(context(), CL_MEM_READ_ONLY, GL_TEXTURE_BUFFER, level, texture,
                                 error);
  };
  EXPECT_CREATE("clCreateFromGLTexture.buffer_level", CL_INVALID_MIP_LEVEL,
                create(1, textures[0], error));
  EXPECT_CREATE("clCreateFromGLTexture.buffer_level_below", CL_INVALID_MIP_LEVEL,
                create(-1, textures[0], error));
  EXPECT_CREATE("clCreateFromGLTexture.buffer_format", CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
                create(0, textures[1], error));
  EXPECT_CREATE("clCreateFromGLTexture.no_buffer", CL_INVALID_GL_OBJECT,
                create(0, textures[2], error));
  if (ShadowIsForced()) return;  // A buffer texture has none.
  const Own<cl_mem> image =
      MAKE("clCreateFromGLTexture.buffer_level_0", create(0, textures[0], error));
  size_t width = 0;
  EXPECT_EQ(clGetImageInfo(image, CL_IMAGE_WIDTH, sizeof(width), &width, nullptr), CL_SUCCESS);
  EXPECT_EQ(width, 192u);
}

INSTANTIATE_TEST_SUITE_P(All, GlFormats, testing::ValuesIn(Bindings()), BindingParamName);

}  // namespace
}  // namespace sluice::gltest
