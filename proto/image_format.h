// SPDX-License-Identifier: Apache-2.0
// An image format's bytes: how large an element is; and how an image lies in memory that client and
// worker share (client_icd/objects/README.md, "Data"). Needed where the client lays out image data
// before, or without, asking the driver: initial contents, host pitches, tightly packed transfers;
// and by both sides for images in the heap. Thread-safe: no state.
#pragma once

#include <CL/cl.h>

#include <cstddef>
#include <cstdint>

namespace sluice::wire {

// Bytes of one element, or 0 for an order and type that OpenCL 3.0 section 5.3.1.1 does not pair.
size_t ElementBytes(const cl_image_format& format);

// Dimensions that a region of such an image has (1 to 3), array layers included; 0 for no image
// type.
int ImageDimensions(cl_mem_object_type type);

// The numbers of an image in the order origin and region use them: layers of a 1D array are [1], of
// a 2D array [2]; what the type has not is 1.
struct ImageExtent {
  size_t v[3];
};
ImageExtent ExtentOf(const cl_image_desc& desc);

// Where the elements of an image lie, in the order of origin and region: what [1] counts (rows, or
// the layers of a 1D array) is row_pitch apart, what [2] counts slice_pitch.
struct ImageLayout {
  size_t element_bytes = 0;
  ImageExtent extent = {};
  size_t row_pitch = 0;
  size_t slice_pitch = 0;
  uint64_t bytes = 0;  // From the first element to the end of the last.

  // Of an element that lies in the image.
  uint64_t OffsetOf(const size_t* origin) const {
    return origin[0] * element_bytes + origin[1] * row_pitch + origin[2] * slice_pitch;
  }
};

// Without gaps, or with the row pitch of the buffer that a 2D image is made from (0: none). False
// if that is no layout: a row longer than its pitch, more bytes than 2^63.
bool LayOutImage(const cl_image_desc& desc, size_t element_bytes, size_t row_pitch,
                 ImageLayout* out);

}  // namespace sluice::wire
