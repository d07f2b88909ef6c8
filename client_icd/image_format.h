// SPDX-License-Identifier: Apache-2.0
// What an image format says about bytes: how large an element is. Needed where the client lays out
// image data before, or without, asking the driver: initial contents, host pitches, tightly packed
// transfers. Thread-safe: no state.
#pragma once

#include <CL/cl.h>

#include <cstddef>

namespace sluice {

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

}  // namespace sluice
