// SPDX-License-Identifier: Apache-2.0
// From a GL object's description to an OpenCL memory object, for GL and EGL alike. Thread-safe: no
// state.
#pragma once

#include <memory>
#include <vector>

#include "client_icd/objects/memory.h"
#include "client_icd/sharing/core/core.h"
#include "client_icd/sharing/gl/gl_object.h"

namespace sluice::client::sharing {

// 2D, rectangle, or a face of a cube map.
bool IsTwoDimensionalTarget(GLenum target);

// Completes a context's supported image formats by those that only a GL's texture gives it.
void AddGlFormats(const Context& context, std::vector<cl_image_format>* formats);

// CL_INVALID_OPERATION if it is an image and no device in the context supports images;
// CL_IMAGE_FORMAT_NOT_SUPPORTED if the devices do not support its format.
cl_int CreateFromGlObject(Context* context, cl_mem_flags flags, Api api,
                          std::unique_ptr<GlObject> object, Ref<MemObject>* out);

}  // namespace sluice::client::sharing
