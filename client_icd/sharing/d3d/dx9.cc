// SPDX-License-Identifier: Apache-2.0
// cl_khr_dx9_media_sharing: images made from planes of Direct3D 9 surfaces (OpenCL 2.2 Extension
// Specification, section 9.7).
#include "absl/strings/str_cat.h"
#include "client_icd/base/api.h"
#include "client_icd/base/client_log.h"
#include "client_icd/sharing/d3d/dx9_share.h"
#include "client_icd/sharing/d3d/dx9_surface.h"

namespace sluice::client {
namespace sharing {
namespace {

// Section 9.7.7.2, what concerns the surface.
cl_int HoldSurface(const Context& context, const Dx9Surface::Source& source,
                   std::unique_ptr<Dx9Surface>* out) {
  const Dx9Share* share = Dx9Share::Of(context);
  // CL_INVALID_OPERATION if there are no devices in context that support adapter_type: the context
  // was created for others.
  const Dx9Adapter* adapter = share->Find(source.adapter_type);
  if (adapter == nullptr) return CL_INVALID_OPERATION;
  // CL_INVALID_DX9_MEDIA_SURFACE_KHR if resource is not a valid resource or is not associated with
  // adapter_type, ...
  const auto surface = os::ComPtr<IDirect3DSurface9>::Of(source.info.resource);
  os::ComPtr<IDirect3DDevice9> device;
  if (!surface || FAILED(surface->GetDevice(device.out())) ||
      !os::IsSameObject(device.get(), adapter->device.get()))
    return CL_INVALID_DX9_MEDIA_SURFACE_KHR;
  // ... or if shared_handle is not NULL or a valid handle value: surfaces of plain Direct3D 9 have
  // none.
  const bool has_handle = source.info.shared_handle != nullptr;
  const bool may_have = os::ComPtr<IDirect3DDevice9Ex>::Of(device.get()) &&
                        source.adapter_type != CL_ADAPTER_D3D9_KHR &&
                        source.info.shared_handle != INVALID_HANDLE_VALUE;
  if (has_handle && !may_have) return CL_INVALID_DX9_MEDIA_SURFACE_KHR;
  return Dx9Surface::Make(share->thread(), device.get(), source, out);
}

cl_int CreateFromSurface(Context* context, cl_mem_flags flags,
                         cl_dx9_media_adapter_type_khr adapter_type, const void* surface_info,
                         cl_uint plane, Ref<MemObject>* out) {
  // CL_INVALID_CONTEXT: "a valid OpenCL context created from a media adapter".
  if (Dx9Share::Of(*context) == nullptr) return CL_INVALID_CONTEXT;
  CL_RETURN_IF_ERROR(CheckAccessFlags(&flags));
  if (surface_info == nullptr) return CL_INVALID_DX9_MEDIA_SURFACE_KHR;
  const Dx9Surface::Source source = {
      adapter_type, *static_cast<const cl_dx9_surface_info_khr*>(surface_info), plane};
  std::unique_ptr<Dx9Surface> surface;
  CL_RETURN_IF_ERROR(HoldSurface(*context, source, &surface));
  // CL_INVALID_IMAGE_FORMAT_DESCRIPTOR also for a format that no device of the context has.
  constexpr cl_int kUnsupported = CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
  const cl_int checked =
      CheckFormat(context, flags, CL_MEM_OBJECT_IMAGE2D, surface->format(), kUnsupported);
  if (checked == kUnsupported) {
    ClientLog(ClientLogLevel::kInfo,
              absl::StrCat("sharing: DX9 media: no device of the context has images of plane ",
                           plane, "'s format (channel order 0x",
                           absl::Hex(surface->format().image_channel_order), ", type 0x",
                           absl::Hex(surface->format().image_channel_data_type), ")"));
  }
  CL_RETURN_IF_ERROR(checked);
  cl_image_desc desc = {};
  desc.image_type = CL_MEM_OBJECT_IMAGE2D;
  desc.image_width = surface->width();
  desc.image_height = surface->height();
  MemObject::Description about = {};
  about.type = CL_MEM_OBJECT_IMAGE2D;
  about.flags = flags;
  about.bytes = surface->bytes();
  about.image = MakeImageShape(surface->format(), desc);
  return CreateShared(context, std::move(about), Api::kDx9Media, std::move(surface), out);
}

bool IsAdapterType(cl_dx9_media_adapter_type_khr type) {
  return type == CL_ADAPTER_D3D9_KHR || type == CL_ADAPTER_D3D9EX_KHR ||
         type == CL_ADAPTER_DXVA_KHR;
}

// The adapters of a query, all of which its devices must go with. CL_INVALID_VALUE if an entry of
// media_adapters_type or media_adapters is not a valid value.
cl_int ReadAdapters(cl_uint count, const cl_dx9_media_adapter_type_khr* types,
                    const void* const* objects, std::optional<AdapterLuid>* luid) {
  for (cl_uint i = 0; i < count; ++i) {
    if (!IsAdapterType(types[i])) return CL_INVALID_VALUE;
    const auto adapter =
        Dx9Adapter::Of(types[i], static_cast<IUnknown*>(const_cast<void*>(objects[i])));
    if (!adapter) return CL_INVALID_VALUE;
    const std::optional<AdapterLuid> one = adapter->luid();
    // No device is on two graphics adapters.
    if (i == 0) {
      *luid = one;
    } else if (*luid != one) {
      luid->reset();
    }
  }
  return CL_SUCCESS;
}

}  // namespace
}  // namespace sharing

namespace api {

cl_int CL_API_CALL clGetDeviceIDsFromDX9MediaAdapterKHR(
    cl_platform_id platform_handle, cl_uint num_media_adapters,
    cl_dx9_media_adapter_type_khr* media_adapters_type, void* media_adapters,
    cl_dx9_media_adapter_set_khr media_adapter_set, cl_uint num_entries, cl_device_id* devices,
    cl_uint* num_devices) noexcept {
  const Platform* platform = Platform::From(platform_handle);
  if (platform == nullptr) return CL_INVALID_PLATFORM;
  // CL_INVALID_VALUE if num_media_adapters is zero or if media_adapters_type is NULL or if
  // media_adapters is NULL.
  if (num_media_adapters == 0 || media_adapters_type == nullptr || media_adapters == nullptr)
    return CL_INVALID_VALUE;
  // CL_INVALID_VALUE if media_adapter_set is not a valid value.
  const bool all = media_adapter_set == CL_ALL_DEVICES_FOR_DX9_MEDIA_ADAPTER_KHR;
  if (!all && media_adapter_set != CL_PREFERRED_DEVICES_FOR_DX9_MEDIA_ADAPTER_KHR)
    return CL_INVALID_VALUE;
  CL_RETURN_IF_ERROR(sharing::CheckDeviceList(num_entries, devices, num_devices));
  std::optional<sharing::AdapterLuid> luid;
  CL_RETURN_IF_ERROR(sharing::ReadAdapters(num_media_adapters, media_adapters_type,
                                           static_cast<const void* const*>(media_adapters), &luid));
  return sharing::GiveDevices(*platform, luid, all, num_entries, devices, num_devices);
}

cl_mem CL_API_CALL clCreateFromDX9MediaSurfaceKHR(cl_context context_handle, cl_mem_flags flags,
                                                  cl_dx9_media_adapter_type_khr adapter_type,
                                                  void* surface_info, cl_uint plane,
                                                  cl_int* errcode_ret) noexcept {
  Context* context = Context::From(context_handle);
  Ref<MemObject> memory;
  const cl_int status =
      context == nullptr
          ? CL_INVALID_CONTEXT
          : sharing::CreateFromSurface(context, flags, adapter_type, surface_info, plane, &memory);
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  Succeed(errcode_ret);
  return memory.Detach()->handle();
}

cl_int CL_API_CALL clEnqueueAcquireDX9MediaSurfacesKHR(
    cl_command_queue command_queue, cl_uint num_objects, const cl_mem* mem_objects,
    cl_uint num_events_in_wait_list, const cl_event* event_wait_list, cl_event* event) noexcept {
  return sharing::AcquireD3d(
      sharing::Api::kDx9Media,
      {command_queue, num_objects, mem_objects, num_events_in_wait_list, event_wait_list, event});
}

cl_int CL_API_CALL clEnqueueReleaseDX9MediaSurfacesKHR(
    cl_command_queue command_queue, cl_uint num_objects, const cl_mem* mem_objects,
    cl_uint num_events_in_wait_list, const cl_event* event_wait_list, cl_event* event) noexcept {
  return sharing::ReleaseD3d(
      sharing::Api::kDx9Media,
      {command_queue, num_objects, mem_objects, num_events_in_wait_list, event_wait_list, event});
}

}  // namespace api
}  // namespace sluice::client
