// SPDX-License-Identifier: Apache-2.0
// Where the elements of an image lie in the application's memory, and which regions of it are valid
// (OpenCL 3.0 section 5.3). In memory a 1D array's layers are slice_pitch apart, as a 3D image's
// slices are. Thread-safe: no state.
#pragma once

#include <CL/cl.h>

#include "client_icd/base/host_region.h"
#include "client_icd/objects/memory.h"

namespace sluice::client {

// CL_INVALID_VALUE if origin or region is NULL, an element of region is 0, or the region is out of
// bounds. Also if a value is given that the image's type has not (section 5.3.3: origin[2] must be
// 0 and region[2] 1 for a 2D image, and so on).
cl_int CheckImageRegion(const ImageShape& image, const size_t* origin, const size_t* region);

// Completes pitches that are 0. CL_INVALID_VALUE if they are less than the region needs, or a slice
// pitch is given for an image without slices.
cl_int CompletePitches(const ImageShape& image, const size_t* region, size_t* row_pitch,
                       size_t* slice_pitch);

// A region whose first element is at `first`, with complete pitches.
HostRegion ImageHostRegion(const ImageShape& image, void* first, const size_t* region,
                           size_t row_pitch, size_t slice_pitch);

// Offset of an element in the image's own host layout, and the bytes of all of it.
size_t ImageOffset(const ImageShape& image, const size_t* origin);
size_t ImageBytes(const ImageShape& image);

}  // namespace sluice::client
