// SPDX-License-Identifier: Apache-2.0
#include "proto/codec.h"

#include <gtest/gtest.h>

namespace sluice::wire {
namespace {

// Work sizes come back as they were, in every number of dimensions, with the parts that were given.
TEST(CodecTest, NdRangeRoundTrip) {
  const size_t global[] = {64, 32, SIZE_MAX};
  const size_t local[] = {8, 4, 1};
  const size_t offset[] = {1, 0, 3};
  for (cl_uint dims = 1; dims <= 3; ++dims) {
    for (const bool has_local : {false, true}) {
      for (const bool has_offset : {false, true}) {
        pb::NdRange message;
        EncodeNdRange(dims, global, has_local ? local : nullptr, has_offset ? offset : nullptr,
                      &message);
        const absl::StatusOr<NdRange> range = DecodeNdRange(message);
        ASSERT_TRUE(range.ok()) << range.status();
        EXPECT_EQ(range->work_dim, dims);
        EXPECT_EQ(range->local_or_null() != nullptr, has_local);
        EXPECT_EQ(range->offset_or_null() != nullptr, has_offset);
        for (cl_uint i = 0; i < dims; ++i) {
          EXPECT_EQ(range->global[i], global[i]);
          EXPECT_EQ(range->local[i], has_local ? local[i] : 0);
          EXPECT_EQ(range->offset[i], has_offset ? offset[i] : 0);
        }
      }
    }
  }
}

// Sizes that OpenCL has no dimensions for, or lists of different lengths, are violations.
TEST(CodecTest, NdRangeOfOddShapesIsRefused) {
  for (const auto& [global, local, offset] : {std::tuple{0, 0, 0},
                                              {4, 0, 0},
                                              {2, 1, 0},
                                              {2, 3, 0},
                                              {2, 2, 1},
                                              {1, 0, 3},
                                              {1000, 1000, 0}}) {
    pb::NdRange message;
    for (int i = 0; i < global; ++i) message.add_global(1);
    for (int i = 0; i < local; ++i) message.add_local(1);
    for (int i = 0; i < offset; ++i) message.add_offset(1);
    EXPECT_FALSE(DecodeNdRange(message).ok()) << global << " " << local << " " << offset;
  }
}

// Three sizes come back in their order.
TEST(CodecTest, Size3RoundTrip) {
  const size_t xyz[] = {1, SIZE_MAX, 3};
  pb::Size3 message;
  EncodeSize3(xyz, &message);
  const Size3 out = DecodeSize3(message);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(out.v[i], xyz[i]);
}

// An image format comes back as it was.
TEST(CodecTest, ImageFormatRoundTrip) {
  pb::ImageFormat message;
  EncodeImageFormat({CL_RGBA, CL_UNORM_INT8}, &message);
  const cl_image_format out = DecodeImageFormat(message);
  EXPECT_EQ(out.image_channel_order, cl_channel_order{CL_RGBA});
  EXPECT_EQ(out.image_channel_data_type, cl_channel_type{CL_UNORM_INT8});
}

// An image's extents come back; the host's pitches stay behind unless they are those of a parent.
TEST(CodecTest, ImageDescRoundTrip) {
  cl_image_desc desc = {};
  desc.image_type = CL_MEM_OBJECT_IMAGE2D_ARRAY;
  desc.image_width = 10;
  desc.image_height = 20;
  desc.image_depth = 30;
  desc.image_array_size = 40;
  desc.image_row_pitch = 4096;
  desc.image_slice_pitch = 8192;
  desc.num_mip_levels = 2;
  desc.num_samples = 4;
  for (const uint64_t parent : {0, 77}) {
    pb::ImageDesc message;
    EncodeImageDesc(desc, parent, &message);
    EXPECT_EQ(message.parent_id(), parent);
    const cl_image_desc out = DecodeImageDesc(message);
    EXPECT_EQ(out.image_type, desc.image_type);
    EXPECT_EQ(out.image_width, 10u);
    EXPECT_EQ(out.image_height, 20u);
    EXPECT_EQ(out.image_depth, 30u);
    EXPECT_EQ(out.image_array_size, 40u);
    EXPECT_EQ(out.image_row_pitch, parent != 0 ? 4096u : 0u);
    EXPECT_EQ(out.image_slice_pitch, 0u);
    EXPECT_EQ(out.num_mip_levels, 2u);
    EXPECT_EQ(out.num_samples, 4u);
    EXPECT_EQ(out.mem_object, nullptr);
  }
}

}  // namespace
}  // namespace sluice::wire
