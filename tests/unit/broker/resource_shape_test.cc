// SPDX-License-Identifier: Apache-2.0
#include "broker/resources/shape.h"

#include <CL/cl.h>
#include <gtest/gtest.h>

#include "absl/status/statusor.h"

namespace sluice::broker {
namespace {

absl::StatusOr<ResourceShape> Completed(ResourceShape shape) {
  const absl::Status completed = CompleteShape(&shape);
  if (!completed.ok()) return completed;
  return shape;
}

ResourceShape Image(uint32_t order, uint32_t type, uint64_t width, uint64_t height) {
  ResourceShape shape;
  shape.image.emplace();
  shape.image->channel_order = order;
  shape.image->channel_type = type;
  shape.image->width = width;
  shape.image->height = height;
  return shape;
}

ResourceShape Fourcc(const char* name, uint64_t width, uint64_t height) {
  ResourceShape shape = Image(0, 0, width, height);
  for (int i = 0; i < 4; ++i) {
    shape.image->drm_fourcc |= static_cast<uint32_t>(name[i]) << (8 * i);
  }
  return shape;
}

// A tight image is what is left when nothing is said about pitches, and both names are filled in.
TEST(ResourceShapeTest, TightDefaults) {
  const auto shape = Completed(Image(CL_BGRA, CL_UNORM_INT8, 1920, 1080));
  ASSERT_TRUE(shape.ok()) << shape.status();
  EXPECT_EQ(shape->size_bytes, 1920u * 1080 * 4);
  EXPECT_EQ(shape->image->planes[0].row_pitch, 7680u);
  EXPECT_EQ(shape->image->drm_fourcc, Fourcc("AR24", 1, 1).image->drm_fourcc);
}

// Planes of a video format follow each other, chroma at half size, rounded up.
TEST(ResourceShapeTest, PlanarFormats) {
  const auto nv12 = Completed(Fourcc("NV12", 5, 3));
  ASSERT_TRUE(nv12.ok()) << nv12.status();
  ASSERT_EQ(nv12->image->planes.size(), 2u);
  EXPECT_EQ(nv12->image->planes[1].offset, 15u);
  EXPECT_EQ(nv12->image->planes[1].row_pitch, 6u);
  EXPECT_EQ(nv12->size_bytes, 15u + 12);
  EXPECT_EQ(Completed(Fourcc("YV12", 4, 4))->size_bytes, 24u);
}

// Pitches of the caller's are kept if they suffice, and decide the size.
TEST(ResourceShapeTest, PitchesOfTheCaller) {
  ResourceShape padded = Image(CL_RGBA, CL_UNORM_INT8, 10, 4);
  padded.image->array_layers = 3;
  padded.image->planes = {{64, 48, 200}};
  const auto shape = Completed(padded);
  ASSERT_TRUE(shape.ok()) << shape.status();
  EXPECT_EQ(shape->size_bytes, 64u + 600);
  padded.image->planes = {{0, 39, 0}};
  EXPECT_FALSE(Completed(padded).ok());
  padded.image->planes = {{0, 48, 183}};
  EXPECT_FALSE(Completed(padded).ok());
}

// OpenCL 3.0 section 5.3.1.1: the padding of CL_Rx and CL_RGx is a channel of its own.
TEST(ResourceShapeTest, PaddedOrdersHaveTheirPadding) {
  const auto two = Completed(Image(CL_Rx, CL_UNORM_INT8, 4, 4));
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ(two->size_bytes, 4u * 4 * 2);
  const auto three = Completed(Image(CL_RGx, CL_UNORM_INT8, 4, 4));
  ASSERT_TRUE(three.ok()) << three.status();
  EXPECT_EQ(three->size_bytes, 4u * 4 * 3);
  EXPECT_FALSE(Completed(Image(CL_RGBx, CL_UNORM_INT8, 4, 4)).ok());
}

// A shape that does not fit together, or would overflow, is refused.
TEST(ResourceShapeTest, Refusals) {
  constexpr uint64_t kHuge = ~uint64_t{0};
  EXPECT_FALSE(Completed(ResourceShape()).ok());
  ResourceShape buffer;
  buffer.size_bytes = kHuge;
  EXPECT_FALSE(Completed(buffer).ok());
  EXPECT_FALSE(Completed(Image(0, 0, 1, 1)).ok());
  EXPECT_FALSE(Completed(Image(CL_RGB, CL_UNORM_INT8, 1, 1)).ok());
  EXPECT_FALSE(Completed(Image(CL_RGBA, CL_UNORM_SHORT_565, 1, 1)).ok());
  EXPECT_FALSE(Completed(Image(CL_RGBA, CL_UNORM_INT8, 0, 1)).ok());
  EXPECT_FALSE(Completed(Image(CL_RGBA, CL_UNORM_INT8, kHuge, 1)).ok());
  EXPECT_FALSE(Completed(Fourcc("????", 1, 1)).ok());
  ResourceShape both = Fourcc("AR24", 4, 4);
  both.image->channel_order = CL_RGBA;
  both.image->channel_type = CL_UNORM_INT8;
  EXPECT_FALSE(Completed(both).ok());
  ResourceShape deep = Image(CL_R, CL_FLOAT, 4, 4);
  deep.image->depth = deep.image->array_layers = 2;
  EXPECT_FALSE(Completed(deep).ok());
  ResourceShape small = Image(CL_R, CL_FLOAT, 4, 4);
  small.size_bytes = 63;
  EXPECT_FALSE(Completed(small).ok());
  for (const PlaneLayout& plane : {PlaneLayout{kHuge, 0, 0}, PlaneLayout{0, kHuge, 0},
                                   PlaneLayout{0, 16, kHuge}, PlaneLayout{kHuge, kHuge, kHuge}}) {
    ResourceShape wild = Image(CL_R, CL_FLOAT, 4, 4);
    wild.image->planes = {plane};
    EXPECT_FALSE(Completed(wild).ok());
  }
  // Rows of 2^40 bytes, 2^16 of them, 2^8 slices: 2^64 bytes, which is not 0.
  for (uint64_t ResourceImage::*const slices :
       {&ResourceImage::depth, &ResourceImage::array_layers}) {
    ResourceShape wraps = Image(CL_R, CL_UNORM_INT8, 1, uint64_t{1} << 16);
    wraps.size_bytes = 4096;
    (*wraps.image).*slices = 1 << 8;
    wraps.image->planes = {{0, uint64_t{1} << 40, 0}};
    EXPECT_FALSE(Completed(wraps).ok());
  }
  ResourceShape overlapping = Fourcc("NV12", 4, 4);
  overlapping.image->planes = {{0, 4, 16}, {8, 4, 8}};
  EXPECT_FALSE(Completed(overlapping).ok());
}

}  // namespace
}  // namespace sluice::broker
