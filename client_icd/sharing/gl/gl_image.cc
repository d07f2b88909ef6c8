// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/gl/gl_image.h"

#include <CL/cl_gl.h>

#include <algorithm>
#include <span>
#include <utility>

#include "client_icd/objects/device.h"

namespace sluice::client::sharing {
namespace {

// The image that table 9.4's words make of each target.
cl_image_desc DescOf(const GlDescription& about) {
  cl_image_desc desc = {};
  desc.image_width = about.width;
  switch (about.type) {
    case CL_GL_OBJECT_TEXTURE1D:
      desc.image_type = CL_MEM_OBJECT_IMAGE1D;
      break;
    case CL_GL_OBJECT_TEXTURE1D_ARRAY:
      desc.image_type = CL_MEM_OBJECT_IMAGE1D_ARRAY;
      desc.image_array_size = about.height;
      break;
    case CL_GL_OBJECT_TEXTURE2D_ARRAY:
      desc.image_type = CL_MEM_OBJECT_IMAGE2D_ARRAY;
      desc.image_height = about.height;
      desc.image_array_size = about.depth;
      break;
    case CL_GL_OBJECT_TEXTURE3D:
      desc.image_type = CL_MEM_OBJECT_IMAGE3D;
      desc.image_height = about.height;
      desc.image_depth = about.depth;
      break;
    case CL_GL_OBJECT_TEXTURE_BUFFER:
      desc.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER;
      break;
    default:
      desc.image_type = CL_MEM_OBJECT_IMAGE2D;
      desc.image_height = about.height;
      break;
  }
  return desc;
}

// OpenCL has a 1D image buffer over a buffer only: one that the application does not see.
cl_int MakeHiddenBuffer(Context* context, cl_mem_flags flags, size_t bytes, Ref<MemObject>* out) {
  MemObject::Description about = {};
  about.flags = flags;
  about.bytes = bytes;
  auto memory = Ref<MemObject>::Adopt(new MemObject(Ref<Context>(context), std::move(about)));
  CL_RETURN_IF_ERROR(MakeBuffer(memory.get(), nullptr));
  *out = std::move(memory);
  return CL_SUCCESS;
}

// Section 9.9 adds depth to the table where a device has the extension: a driver may list such
// formats without.
bool HasDepthImages(const Context& context) {
  const std::span<Device* const> devices = context.devices();
  return std::any_of(devices.begin(), devices.end(), [](const Device* device) {
    return device->HasExtension("cl_khr_gl_depth_images");
  });
}

}  // namespace

bool IsTwoDimensionalTarget(GLenum target) {
  return target == GL_TEXTURE_2D || target == GL_TEXTURE_RECTANGLE ||
         (target >= GL_TEXTURE_CUBE_MAP_POSITIVE_X && target <= GL_TEXTURE_CUBE_MAP_NEGATIVE_Z);
}

void AddGlFormats(const Context& context, std::vector<cl_image_format>* formats) {
  const auto* share = static_cast<GlShare*>(context.Interop(Api::kGl));
  // OpenGL ES cannot read depth.
  if (share == nullptr || share->caps().version.es || !HasDepthImages(context)) return;
  std::vector<cl_image_format> added;
  for (const GlFormat* format = GlFormatsBegin(); format != GlFormatsEnd(); ++format) {
    const cl_image_format by = format->worker_cl();
    const bool has = std::any_of(formats->begin(), formats->end(), [&by](const auto& one) {
      return one.image_channel_order == by.image_channel_order &&
             one.image_channel_data_type == by.image_channel_data_type;
    });
    if (format->has_stencil() && has) added.push_back(format->cl);
  }
  formats->insert(formats->end(), added.begin(), added.end());
}

cl_int CreateFromGlObject(Context* context, cl_mem_flags flags, Api api,
                          std::unique_ptr<GlObject> object, Ref<MemObject>* out) {
  const GlDescription& gl = object->about();
  MemObject::Description about = {};
  about.flags = flags;
  about.bytes = gl.bytes;
  if (gl.format != nullptr) {
    if (!context->supports_images()) return CL_INVALID_OPERATION;
    // CL_INVALID_IMAGE_FORMAT_DESCRIPTOR if the internal format does not map to a supported OpenCL
    // image format (section 9.4.2).
    if (gl.format->is_depth() && !HasDepthImages(*context))
      return CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
    const cl_image_desc desc = DescOf(gl);
    CL_RETURN_IF_ERROR(
        CheckFormat(context, flags, desc.image_type, gl.format->cl, CL_IMAGE_FORMAT_NOT_SUPPORTED));
    about.type = desc.image_type;
    about.image = MakeImageShape(gl.format->worker_cl(), desc);
    if (gl.format->has_stencil()) about.image->seen_as = gl.format->cl;
    if (desc.image_type == CL_MEM_OBJECT_IMAGE1D_BUFFER) {
      CL_RETURN_IF_ERROR(MakeHiddenBuffer(context, flags, gl.bytes, &about.parent));
    }
  }
  return CreateShared(context, std::move(about), api, std::move(object), out);
}

}  // namespace sluice::client::sharing
