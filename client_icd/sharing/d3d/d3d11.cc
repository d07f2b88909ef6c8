// SPDX-License-Identifier: Apache-2.0
// The entry points of cl_khr_d3d11_sharing, whose functions are cl_nv_d3d11_sharing's too.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "client_icd/base/api.h"
#include "client_icd/base/uncancelled.h"
#include "client_icd/sharing/d3d/d3d_memory.h"
#include "client_icd/sharing/d3d/d3d_share.h"

namespace sluice::client::sharing {
namespace {

#define DXGI_ROW(name, value, order, type) static_assert(DXGI_FORMAT_##name == value);
#include "proto/dxgi_formats.inc"

struct Alias {
  const char* name;
  void* address;
};

// cl_nv_d3d11_sharing: the same functions by other names, and tokens of the same values.
const Alias kAliases[] = {
    {"clGetDeviceIDsFromD3D11NV", UncancelledAddress<&api::clGetDeviceIDsFromD3D11KHR>()},
    {"clCreateFromD3D11BufferNV", UncancelledAddress<&api::clCreateFromD3D11BufferKHR>()},
    {"clCreateFromD3D11Texture2DNV", UncancelledAddress<&api::clCreateFromD3D11Texture2DKHR>()},
    {"clCreateFromD3D11Texture3DNV", UncancelledAddress<&api::clCreateFromD3D11Texture3DKHR>()},
    {"clEnqueueAcquireD3D11ObjectsNV", UncancelledAddress<&api::clEnqueueAcquireD3D11ObjectsKHR>()},
    {"clEnqueueReleaseD3D11ObjectsNV", UncancelledAddress<&api::clEnqueueReleaseD3D11ObjectsKHR>()},
};

void* FindAlias(const char* name) {
  const auto* found =
      std::find_if(std::begin(kAliases), std::end(kAliases),
                   [name](const Alias& a) { return std::strcmp(a.name, name) == 0; });
  return found == std::end(kAliases) ? nullptr : found->address;
}

constexpr InteropExtension::Name kD3d11Names[] = {{"cl_khr_d3d11_sharing"},
                                                  {"cl_nv_d3d11_sharing"}};

}  // namespace

const InteropExtension kD3d11Interop = {
    .names = kD3d11Names,
    .has_context_property = D3dShare<Direct3d11>::IsProperty,
    .open = D3dShare<Direct3d11>::Open,
    .context_info = D3dShare<Direct3d11>::ContextInfo,
    .find_function = FindAlias,
};

}  // namespace sluice::client::sharing

namespace sluice::client::api {

using sharing::Direct3d11;

cl_int CL_API_CALL clGetDeviceIDsFromD3D11KHR(cl_platform_id platform,
                                              cl_d3d11_device_source_khr d3d_device_source,
                                              void* d3d_object,
                                              cl_d3d11_device_set_khr d3d_device_set,
                                              cl_uint num_entries, cl_device_id* devices,
                                              cl_uint* num_devices) noexcept {
  return sharing::GetD3dDevices<Direct3d11>(platform, d3d_device_source, d3d_object, d3d_device_set,
                                            num_entries, devices, num_devices);
}

cl_mem CL_API_CALL clCreateFromD3D11BufferKHR(cl_context context, cl_mem_flags flags,
                                              ID3D11Buffer* resource,
                                              cl_int* errcode_ret) noexcept {
  return sharing::CreateFromD3d<Direct3d11>(context, flags, resource, 0, errcode_ret);
}

cl_mem CL_API_CALL clCreateFromD3D11Texture2DKHR(cl_context context, cl_mem_flags flags,
                                                 ID3D11Texture2D* resource, UINT subresource,
                                                 cl_int* errcode_ret) noexcept {
  return sharing::CreateFromD3d<Direct3d11>(context, flags, resource, subresource, errcode_ret);
}

cl_mem CL_API_CALL clCreateFromD3D11Texture3DKHR(cl_context context, cl_mem_flags flags,
                                                 ID3D11Texture3D* resource, UINT subresource,
                                                 cl_int* errcode_ret) noexcept {
  return sharing::CreateFromD3d<Direct3d11>(context, flags, resource, subresource, errcode_ret);
}

cl_int CL_API_CALL clEnqueueAcquireD3D11ObjectsKHR(cl_command_queue command_queue,
                                                   cl_uint num_objects, const cl_mem* mem_objects,
                                                   cl_uint num_events_in_wait_list,
                                                   const cl_event* event_wait_list,
                                                   cl_event* event) noexcept {
  return sharing::AcquireD3d(
      Direct3d11::kTokens.api,
      {command_queue, num_objects, mem_objects, num_events_in_wait_list, event_wait_list, event});
}

cl_int CL_API_CALL clEnqueueReleaseD3D11ObjectsKHR(cl_command_queue command_queue,
                                                   cl_uint num_objects, const cl_mem* mem_objects,
                                                   cl_uint num_events_in_wait_list,
                                                   const cl_event* event_wait_list,
                                                   cl_event* event) noexcept {
  return sharing::ReleaseD3d(
      Direct3d11::kTokens.api,
      {command_queue, num_objects, mem_objects, num_events_in_wait_list, event_wait_list, event});
}

}  // namespace sluice::client::api
