// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/gl/gl_format.h"

#include <gtest/gtest.h>

#include <set>

#include "client_icd/sharing/gl/gl_binding.h"
#include "client_icd/sharing/gl/gl_read.h"
#include "proto/image_format.h"

namespace sluice::client::sharing {
namespace {

// Every internal format has one row, whose elements are as large as OpenCL's.
TEST(GlFormatTest, RowsAreUniqueAndSized) {
  std::set<GLenum> seen;
  for (const GlFormat* format = GlFormatsBegin(); format != GlFormatsEnd(); ++format) {
    EXPECT_TRUE(seen.insert(format->internal_format).second) << format->internal_format;
    EXPECT_NE(wire::ElementBytes(format->cl), 0u) << format->internal_format;
    EXPECT_EQ(wire::ElementBytes(format->worker_cl()), format->element_bytes)
        << format->internal_format;
    EXPECT_EQ(FindGlFormat(format->internal_format), format);
  }
  EXPECT_EQ(FindGlFormat(GL_RGB8), nullptr);
}

// An unsized format is the sized one that the driver made of it, or nothing.
TEST(GlFormatTest, UnsizedFormatsFollowTheirComponents) {
  EXPECT_EQ(FindUnsizedGlFormat(GL_RGBA, {GL_UNSIGNED_NORMALIZED, 8, 8, 8, 8}),
            FindGlFormat(GL_RGBA8));
  EXPECT_EQ(FindUnsizedGlFormat(GL_RED, {GL_UNSIGNED_NORMALIZED, 16, 0, 0, 0}),
            FindGlFormat(GL_R16));
  EXPECT_EQ(FindUnsizedGlFormat(GL_RGBA, {GL_UNSIGNED_NORMALIZED, 4, 4, 4, 4}), nullptr);
  EXPECT_EQ(FindUnsizedGlFormat(GL_RGBA, {GL_FLOAT, 8, 8, 8, 8}), nullptr);
  EXPECT_EQ(FindUnsizedGlFormat(GL_RGB, {GL_UNSIGNED_NORMALIZED, 8, 8, 8, 0}), nullptr);
}

// A half comes back as the same half: zeros, denormals, the largest, infinities.
TEST(GlReadTest, HalvesSurviveFloats) {
  const auto to_float = [](uint32_t half) {
    const uint32_t sign = half >> 15;
    const uint32_t exponent = (half >> 10) & 31;
    const uint32_t fraction = half & 0x3ff;
    float value = exponent == 0 ? static_cast<float>(fraction) / 16777216.0f
                                : static_cast<float>(1024 + fraction) / 1024.0f;
    if (exponent == 31) value = __builtin_inff();
    for (uint32_t i = 15; exponent != 0 && exponent != 31 && i < exponent; ++i) value *= 2;
    for (uint32_t i = exponent; exponent != 0 && i < 15; ++i) value /= 2;
    return sign != 0 ? -value : value;
  };
  for (uint32_t half = 0; half < 0x10000; ++half) {
    if (((half >> 10) & 31) == 31 && (half & 0x3ff) != 0) continue;  // Not a number.
    ASSERT_EQ(FloatToHalf(to_float(half)), half) << half;
  }
}

// Depth and stencil are the same bits after the depth was a float; what a kernel may write besides
// is brought between 0 and 1 where it must be a number of 24 bits.
TEST(GlReadTest, DepthAndStencilSurviveFloats) {
  const GlFormat& packed = *FindGlFormat(GL_DEPTH24_STENCIL8);
  uint8_t floats[sizeof(float)], stencil = 0;
  for (uint32_t depth = 0; depth <= 0xffffff; depth += depth < 100 || depth > 0xffff00 ? 1 : 37) {
    const uint32_t word = (depth << 8) | (~depth & 0xff);
    uint32_t back = 0;
    SplitDepthStencils(packed, reinterpret_cast<const uint8_t*>(&word), 1, floats, &stencil);
    JoinDepthStencils(packed, floats, &stencil, 1, reinterpret_cast<uint8_t*>(&back));
    ASSERT_EQ(back, word);
  }
  const float odd[] = {-1.0f, 2.0f, __builtin_inff(), -__builtin_inff(), __builtin_nanf(""), 0.5f};
  const uint8_t stencils[6] = {1, 2, 3, 4, 5, 6};
  uint32_t words[6] = {};
  JoinDepthStencils(packed, reinterpret_cast<const uint8_t*>(odd), stencils, 6,
                    reinterpret_cast<uint8_t*>(words));
  const uint32_t wanted[6] = {1, 0xffffff02, 0xffffff03, 4, 5, 0x80000006};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(words[i], wanted[i]) << i;

  const GlFormat& wide = *FindGlFormat(GL_DEPTH32F_STENCIL8);
  const uint32_t elements[4] = {0x3f000001, 0xab, 0xbf800000, 0x17};
  uint32_t joined[4] = {}, two_floats[2] = {};
  uint8_t two_stencils[2] = {};
  SplitDepthStencils(wide, reinterpret_cast<const uint8_t*>(elements), 2,
                     reinterpret_cast<uint8_t*>(two_floats), two_stencils);
  EXPECT_EQ(two_floats[1], elements[2]);
  EXPECT_EQ(two_stencils[0], 0xab);
  JoinDepthStencils(wide, reinterpret_cast<const uint8_t*>(two_floats), two_stencils, 2,
                    reinterpret_cast<uint8_t*>(joined));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(joined[i], elements[i]) << i;
}

// Elements that were read as four wide channels are packed as the format has them.
TEST(GlReadTest, WideElementsAreNarrowed) {
  const uint32_t wide[8] = {1, 2, 3, 4, 0xfffffff0, 6, 7, 8};
  uint8_t out[8] = {};
  NarrowElements(*FindGlFormat(GL_RG8I), {GL_RGBA_INTEGER, GL_INT, 16, false},
                 reinterpret_cast<const uint8_t*>(wide), 2, out);
  EXPECT_EQ(out[0], 1);
  EXPECT_EQ(out[1], 2);
  EXPECT_EQ(out[2], 0xf0);
  EXPECT_EQ(out[3], 6);
  const uint8_t rgba[4] = {10, 20, 30, 40};
  NarrowElements(*FindGlFormat(GL_BGRA), {GL_RGBA, GL_UNSIGNED_BYTE, 4, false}, rgba, 1, out);
  EXPECT_EQ(out[0], 30);
  EXPECT_EQ(out[1], 20);
  EXPECT_EQ(out[2], 10);
  EXPECT_EQ(out[3], 40);
}

// Versions are read from the text that both APIs give; anything else is too old.
TEST(GlVersionTest, Parse) {
  EXPECT_EQ(GlVersion::Parse("4.5 (Compatibility Profile) Mesa 22.3.6").number, 45);
  EXPECT_FALSE(GlVersion::Parse("4.5 (Compatibility Profile) Mesa 22.3.6").es);
  EXPECT_EQ(GlVersion::Parse("OpenGL ES 3.2 Mesa 22.3.6").number, 32);
  EXPECT_TRUE(GlVersion::Parse("OpenGL ES 3.2 Mesa 22.3.6").es);
  EXPECT_TRUE(GlVersion::Parse("3.2.0 NVIDIA 580.1").enough());
  EXPECT_FALSE(GlVersion::Parse("2.1 Mesa").enough());
  EXPECT_FALSE(GlVersion::Parse("OpenGL ES 3.0").enough());
  EXPECT_FALSE(GlVersion::Parse("").enough());
  EXPECT_FALSE(GlVersion::Parse(nullptr).enough());
  EXPECT_FALSE(GlVersion::Parse("OpenGL ES-CM 1.1").enough());
}

}  // namespace
}  // namespace sluice::client::sharing
