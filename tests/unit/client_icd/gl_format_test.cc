// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/gl_format.h"

#include <gtest/gtest.h>

#include <set>

#include "client_icd/sharing/gl_binding.h"
#include "client_icd/sharing/gl_read.h"
#include "proto/image_format.h"

namespace sluice::sharing {
namespace {

// Every internal format has one row, whose elements are as large as OpenCL's.
TEST(GlFormatTest, RowsAreUniqueAndSized) {
  std::set<GLenum> seen;
  for (const GlFormat* format = GlFormatsBegin(); format != GlFormatsEnd(); ++format) {
    EXPECT_TRUE(seen.insert(format->internal_format).second) << format->internal_format;
    EXPECT_EQ(ElementBytes(format->cl), format->element_bytes) << format->internal_format;
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

// What was a half is the same half again: zeros, denormals, the largest, infinities.
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
}  // namespace sluice::sharing
