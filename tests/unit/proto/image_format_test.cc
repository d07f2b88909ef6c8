// SPDX-License-Identifier: Apache-2.0
#include "proto/image_format.h"

#include <CL/cl_gl.h>
#include <gtest/gtest.h>

namespace sluice::wire {
namespace {

// An element takes channels times the channel's size, as OpenCL 3.0 section 5.3.1.1 tabulates them.
TEST(ImageFormatTest, UnpackedElements) {
  EXPECT_EQ(ElementBytes({CL_RGBA, CL_UNORM_INT8}), 4u);
  EXPECT_EQ(ElementBytes({CL_BGRA, CL_SNORM_INT8}), 4u);
  EXPECT_EQ(ElementBytes({CL_RGBA, CL_HALF_FLOAT}), 8u);
  EXPECT_EQ(ElementBytes({CL_RGBA, CL_FLOAT}), 16u);
  EXPECT_EQ(ElementBytes({CL_RG, CL_UNSIGNED_INT32}), 8u);
  EXPECT_EQ(ElementBytes({CL_RA, CL_SIGNED_INT16}), 4u);
  EXPECT_EQ(ElementBytes({CL_R, CL_UNSIGNED_INT8}), 1u);
  EXPECT_EQ(ElementBytes({CL_A, CL_SIGNED_INT32}), 4u);
  EXPECT_EQ(ElementBytes({CL_INTENSITY, CL_UNORM_INT16}), 2u);
  EXPECT_EQ(ElementBytes({CL_sRGBA, CL_UNORM_INT8}), 4u);
  EXPECT_EQ(ElementBytes({CL_DEPTH, CL_FLOAT}), 4u);
  EXPECT_EQ(ElementBytes({CL_DEPTH, CL_UNORM_INT16}), 2u);
}

// The packed types hold a whole element, and only with the orders they are made for.
TEST(ImageFormatTest, PackedElements) {
  EXPECT_EQ(ElementBytes({CL_RGB, CL_UNORM_SHORT_565}), 2u);
  EXPECT_EQ(ElementBytes({CL_RGBx, CL_UNORM_SHORT_555}), 2u);
  EXPECT_EQ(ElementBytes({CL_RGB, CL_UNORM_INT_101010}), 4u);
  EXPECT_EQ(ElementBytes({CL_RGBA, CL_UNORM_INT_101010_2}), 4u);
  EXPECT_EQ(ElementBytes({CL_RGBA, CL_UNORM_SHORT_565}), 0u);
  EXPECT_EQ(ElementBytes({CL_DEPTH_STENCIL, CL_UNORM_INT24}), 4u);
  EXPECT_EQ(ElementBytes({CL_DEPTH_STENCIL, CL_FLOAT}), 8u);
}

// A number that is no order or no type has no size.
TEST(ImageFormatTest, Unknown) {
  EXPECT_EQ(ElementBytes({0, CL_FLOAT}), 0u);
  EXPECT_EQ(ElementBytes({CL_RGBA, 0}), 0u);
  EXPECT_EQ(ElementBytes({CL_DEPTH_STENCIL, CL_UNORM_INT8}), 0u);
}

// Layers stand where origin and region count them; unused numbers of the descriptor are not looked
// at.
TEST(ImageFormatTest, Extents) {
  cl_image_desc desc = {};
  desc.image_width = 5;
  desc.image_height = 6;
  desc.image_depth = 7;
  desc.image_array_size = 8;
  struct Row {
    cl_mem_object_type type;
    int dimensions;
    size_t y, z;
  };
  for (const Row& row :
       {Row{CL_MEM_OBJECT_IMAGE1D, 1, 1, 1}, Row{CL_MEM_OBJECT_IMAGE1D_BUFFER, 1, 1, 1},
        Row{CL_MEM_OBJECT_IMAGE1D_ARRAY, 2, 8, 1}, Row{CL_MEM_OBJECT_IMAGE2D, 2, 6, 1},
        Row{CL_MEM_OBJECT_IMAGE2D_ARRAY, 3, 6, 8}, Row{CL_MEM_OBJECT_IMAGE3D, 3, 6, 7}}) {
    desc.image_type = row.type;
    const ImageExtent extent = ExtentOf(desc);
    EXPECT_EQ(ImageDimensions(row.type), row.dimensions);
    EXPECT_EQ(extent.v[0], 5u);
    EXPECT_EQ(extent.v[1], row.y);
    EXPECT_EQ(extent.v[2], row.z);
  }
  EXPECT_EQ(ImageDimensions(CL_MEM_OBJECT_BUFFER), 0);
}

// Images lie without gaps, or with the row pitch of their buffer, whose last row has no gap behind
// it; the layers of a 1D array are what rows are to others.
TEST(ImageFormatTest, Layouts) {
  cl_image_desc desc = {};
  desc.image_width = 5;
  desc.image_height = 6;
  desc.image_depth = 7;
  desc.image_array_size = 8;
  ImageLayout layout;
  desc.image_type = CL_MEM_OBJECT_IMAGE1D_ARRAY;
  ASSERT_TRUE(LayOutImage(desc, 4, 0, &layout));
  EXPECT_EQ(layout.bytes, 4u * 5 * 8);
  const size_t layer[3] = {1, 2, 0};
  EXPECT_EQ(layout.OffsetOf(layer), 4u + 2 * 20);
  desc.image_type = CL_MEM_OBJECT_IMAGE3D;
  ASSERT_TRUE(LayOutImage(desc, 16, 0, &layout));
  EXPECT_EQ(layout.bytes, 16u * 5 * 6 * 7);
  const size_t voxel[3] = {1, 2, 3};
  EXPECT_EQ(layout.OffsetOf(voxel), 16u + 2 * 80 + 3 * 480);
  desc.image_type = CL_MEM_OBJECT_IMAGE2D;
  ASSERT_TRUE(LayOutImage(desc, 4, 128, &layout));
  EXPECT_EQ(layout.bytes, 128u * 5 + 20);
}

// Values that wrap, or rows longer than their pitch, are no layout.
TEST(ImageFormatTest, NoLayouts) {
  cl_image_desc desc = {};
  ImageLayout layout;
  desc.image_type = CL_MEM_OBJECT_IMAGE2D;
  desc.image_width = 5;
  desc.image_height = 6;
  EXPECT_FALSE(LayOutImage(desc, 4, 19, &layout));
  EXPECT_FALSE(LayOutImage(desc, 4, SIZE_MAX / 2, &layout));
  desc.image_width = SIZE_MAX / 2;
  EXPECT_FALSE(LayOutImage(desc, 4, 0, &layout));
  desc.image_width = desc.image_height = size_t{1} << 32;
  EXPECT_FALSE(LayOutImage(desc, 4, 0, &layout));
}

}  // namespace
}  // namespace sluice::wire
