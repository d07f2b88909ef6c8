// SPDX-License-Identifier: Apache-2.0
#include "client_icd/image_format.h"

#include <gtest/gtest.h>

namespace sluice {
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

// What is no order or no type has no size.
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

}  // namespace
}  // namespace sluice
