// SPDX-License-Identifier: Apache-2.0
// Finds out if a driver really works in the memory that CL_MEM_USE_HOST_PTR names, which section
// 5.2.1 allows but does not promise ("implementations can cache the contents"), and what memory
// objects in the shared heap need. Tried, with a few bytes, rather than believed of a device's
// type. Images are tried type by type, since a driver may lay out or tile one type and not another.
//
// Session thread only: they wait for the driver on the context's own queue, some ten microseconds.
#pragma once

#include <cstdint>

#include "daemon/worker/objects.h"
#include "proto/image_format.h"

namespace sluice::worker {

// Both ways and without a map.
bool BuffersWorkInHostMemory(const ContextObject& context);

// Both ways, without a map and with one, in the layout of LayOutImage. Tried once per context and
// type.
bool ImagesWorkInHostMemory(ContextObject* context, cl_mem_object_type type);

// An image made from a buffer that lies at `memory`: whether a map of the image leads there.
bool MapsTo(const MemoryObject& image, const wire::ImageLayout& layout, const uint8_t* memory);

}  // namespace sluice::worker
