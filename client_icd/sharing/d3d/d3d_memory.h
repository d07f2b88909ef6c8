// SPDX-License-Identifier: Apache-2.0
// clCreateFromD3D10...KHR and clCreateFromD3D11...KHR: from a resource to a memory object. T is a
// traits class of d3d_traits.h. Thread-safe: no state.
#pragma once

#include <memory>
#include <utility>

#include "client_icd/sharing/core/core.h"
#include "client_icd/sharing/d3d/d3d_object.h"
#include "client_icd/sharing/d3d/d3d_share.h"
#include "proto/image_format.h"

namespace sluice::client::sharing {

template <typename T>
D3dShape ShapeOf(typename T::Buffer* buffer) {
  typename T::BufferDesc desc;
  buffer->GetDesc(&desc);
  return {.kind = D3dShape::Kind::kBuffer,
          .width = desc.ByteWidth,
          .immutable = desc.Usage == T::kImmutable};
}
template <typename T>
D3dShape ShapeOf(typename T::Texture2d* texture) {
  typename T::Texture2dDesc desc;
  texture->GetDesc(&desc);
  return {.kind = D3dShape::Kind::kTexture2d,
          .width = desc.Width,
          .height = desc.Height,
          .levels = desc.MipLevels,
          .layers = desc.ArraySize,
          .dxgi_format = static_cast<uint32_t>(desc.Format),
          .samples = desc.SampleDesc.Count,
          .immutable = desc.Usage == T::kImmutable,
          .nt_handle = (desc.MiscFlags & T::kSharedNtHandle) != 0,
          .keyed_mutex = (desc.MiscFlags & T::kSharedKeyedMutex) != 0};
}
template <typename T>
D3dShape ShapeOf(typename T::Texture3d* texture) {
  typename T::Texture3dDesc desc;
  texture->GetDesc(&desc);
  return {.kind = D3dShape::Kind::kTexture3d,
          .width = desc.Width,
          .height = desc.Height,
          .depth = desc.Depth,
          .levels = desc.MipLevels,
          .dxgi_format = static_cast<uint32_t>(desc.Format),
          .immutable = desc.Usage == T::kImmutable};
}

// The checks of clCreateFromD3D1x... that concern the resource, in the order of their lists.
template <typename T, typename Typed>
cl_int DescribeResource(const D3dShare<T>& share, Typed* given, UINT index, D3dSubresource<T>* out,
                        cl_image_format* format) {
  constexpr cl_int kInvalid = T::kTokens.invalid_resource;
  // CL_INVALID_D3D1x_RESOURCE_KHR if resource is not a Direct3D buffer (texture) resource, ...
  const auto resource = os::ComPtr<Typed>::Of(given);
  if (!resource) return kInvalid;
  out->shape = ShapeOf<T>(resource.get());
  // ... if it was created with the usage IMMUTABLE, or is a multisampled texture, ...
  if (out->shape.immutable || out->shape.samples != 1) return kInvalid;
  // ... or if context was not created against the same Direct3D device from which it was created.
  os::ComPtr<typename T::Device> device;
  resource->GetDevice(device.out());
  if (!os::IsSameObject(device.get(), share.device())) return kInvalid;
  // CL_INVALID_VALUE if subresource is not a valid subresource index for resource.
  const std::optional<D3dExtent> extent = ExtentOf(out->shape, index);
  if (!extent) return CL_INVALID_VALUE;
  if (out->shape.kind != D3dShape::Kind::kBuffer) {
    // CL_INVALID_IMAGE_FORMAT_DESCRIPTOR if the texture format of resource is not listed.
    const std::optional<cl_image_format> found = FindDxgiFormat(out->shape.dxgi_format);
    if (!found) return CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
    *format = *found;
    out->element_bytes = wire::ElementBytes(*found);
  }
  out->resource = os::ComPtr<typename T::Resource>::Share(resource.get());
  out->given = given;
  out->index = index;
  out->extent = *extent;
  return CL_SUCCESS;
}

template <typename T, typename Typed>
cl_int CreateFromResource(Context* context, cl_mem_flags flags, Typed* given, UINT index,
                          Ref<MemObject>* out) {
  // CL_INVALID_CONTEXT: memory objects may be created from Direct3D objects "if and only if the
  // OpenCL context has been created from a Direct3D device".
  const D3dShare<T>* share = D3dShare<T>::Of(*context);
  if (share == nullptr) return CL_INVALID_CONTEXT;
  // CL_INVALID_VALUE if values specified in flags are not valid.
  CL_RETURN_IF_ERROR(CheckAccessFlags(&flags));
  D3dSubresource<T> from;
  cl_image_format format = {};
  CL_RETURN_IF_ERROR(DescribeResource<T>(*share, given, index, &from, &format));
  from.same_adapter = IsOnAdapter(context->devices(), LuidOfDxgiDevice(share->device()));
  MemObject::Description about = {};
  about.flags = flags;
  about.bytes = from.extent.width * from.extent.height * from.extent.depth * from.element_bytes;
  if (from.shape.kind != D3dShape::Kind::kBuffer) {
    cl_image_desc desc = {};
    const bool is_3d = from.shape.kind == D3dShape::Kind::kTexture3d;
    desc.image_type = is_3d ? CL_MEM_OBJECT_IMAGE3D : CL_MEM_OBJECT_IMAGE2D;
    desc.image_width = from.extent.width;
    desc.image_height = from.extent.height;
    desc.image_depth = is_3d ? from.extent.depth : 0;
    // "... or if the Direct3D texture format does not map to a supported OpenCL image format."
    CL_RETURN_IF_ERROR(
        CheckFormat(context, flags, desc.image_type, format, CL_INVALID_IMAGE_FORMAT_DESCRIPTOR));
    about.type = desc.image_type;
    about.image = MakeImageShape(format, desc);
  }
  auto object = std::make_unique<D3dObject<T>>(
      share->thread(), os::ComPtr<typename T::Device>::Share(share->device()), std::move(from));
  return CreateShared(context, std::move(about), T::kTokens.api, std::move(object), out);
}

// clCreateFromD3D1xBufferKHR, ...Texture2DKHR, ...Texture3DKHR, by the type of the resource.
template <typename T, typename Typed>
cl_mem CreateFromD3d(cl_context context_handle, cl_mem_flags flags, Typed* resource, UINT index,
                     cl_int* errcode_ret) {
  Context* context = Context::From(context_handle);
  Ref<MemObject> memory;
  const cl_int status = context == nullptr
                            ? CL_INVALID_CONTEXT
                            : CreateFromResource<T>(context, flags, resource, index, &memory);
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  Succeed(errcode_ret);
  return memory.Detach()->handle();
}

}  // namespace sluice::client::sharing
