// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "client_icd/objects/memory.h"

namespace sluice::client {
namespace {

ImageShape Shape() {
  ImageShape shape;
  shape.format = {CL_RGBA, CL_UNORM_INT8};
  shape.element_bytes = 4;
  shape.desc.image_type = CL_MEM_OBJECT_IMAGE3D;
  shape.desc.image_width = 10;
  shape.desc.image_height = 5;
  shape.desc.image_depth = 3;
  shape.extent = wire::ExtentOf(shape.desc);
  shape.row_pitch = 64;  // Of the application's memory: nothing that the heap has to do with.
  shape.slice_pitch = 640;
  return shape;
}

pb::MemoryPlacement Placement() {
  pb::MemoryPlacement placement;
  placement.set_in_heap(true);
  placement.set_segment(1);
  placement.set_element_size(4);
  placement.set_row_pitch(40);
  placement.set_slice_pitch(200);
  return placement;
}

// An image of its own lies without gaps, one made from a buffer with the buffer's row pitch.
TEST(ImagePlacementTest, AsTheContractSays) {
  wire::ImageLayout layout;
  ASSERT_TRUE(LayOutInHeap(Shape(), /*of_buffer=*/false, Placement(), &layout));
  EXPECT_EQ(layout.bytes, 600u);
  ImageShape of_buffer = Shape();
  of_buffer.desc.image_type = CL_MEM_OBJECT_IMAGE2D;
  pb::MemoryPlacement placement = Placement();
  placement.set_row_pitch(64);
  placement.set_slice_pitch(320);
  ASSERT_TRUE(LayOutInHeap(of_buffer, /*of_buffer=*/true, placement, &layout));
  EXPECT_EQ(layout.bytes, 4 * 64u + 40u);
}

// A worker that names another element size, other pitches, or pitches that wrap is not followed
// into the heap.
TEST(ImagePlacementTest, LiesAreNotFollowed) {
  wire::ImageLayout layout;
  EXPECT_FALSE(LayOutInHeap(Shape(), false, {}, &layout));
  for (const uint64_t lie : {uint64_t{0}, uint64_t{1}, uint64_t{39}, uint64_t{41}, uint64_t{4096},
                             uint64_t{1} << 63, UINT64_MAX}) {
    pb::MemoryPlacement placement = Placement();
    placement.set_row_pitch(lie);
    EXPECT_FALSE(LayOutInHeap(Shape(), false, placement, &layout)) << lie;
    placement = Placement();
    placement.set_slice_pitch(lie);
    EXPECT_FALSE(LayOutInHeap(Shape(), false, placement, &layout)) << lie;
    placement = Placement();
    placement.set_element_size(lie);
    EXPECT_FALSE(LayOutInHeap(Shape(), false, placement, &layout)) << lie;
  }
}

}  // namespace
}  // namespace sluice::client
