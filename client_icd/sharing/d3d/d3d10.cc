// SPDX-License-Identifier: Apache-2.0
// The entry points of cl_khr_d3d10_sharing.
#include "client_icd/base/api.h"
#include "client_icd/sharing/d3d/d3d_memory.h"
#include "client_icd/sharing/d3d/d3d_share.h"

namespace sluice::client::sharing {
namespace {

constexpr InteropExtension::Name kD3d10Names[] = {{"cl_khr_d3d10_sharing"}};

}  // namespace

const InteropExtension kD3d10Interop = {
    .names = kD3d10Names,
    .has_context_property = D3dShare<Direct3d10>::IsProperty,
    .open = D3dShare<Direct3d10>::Open,
    .context_info = D3dShare<Direct3d10>::ContextInfo,
};

}  // namespace sluice::client::sharing

namespace sluice::client::api {

using sharing::Direct3d10;

cl_int CL_API_CALL clGetDeviceIDsFromD3D10KHR(cl_platform_id platform,
                                              cl_d3d10_device_source_khr d3d_device_source,
                                              void* d3d_object,
                                              cl_d3d10_device_set_khr d3d_device_set,
                                              cl_uint num_entries, cl_device_id* devices,
                                              cl_uint* num_devices) noexcept {
  return sharing::GetD3dDevices<Direct3d10>(platform, d3d_device_source, d3d_object, d3d_device_set,
                                            num_entries, devices, num_devices);
}

cl_mem CL_API_CALL clCreateFromD3D10BufferKHR(cl_context context, cl_mem_flags flags,
                                              ID3D10Buffer* resource,
                                              cl_int* errcode_ret) noexcept {
  return sharing::CreateFromD3d<Direct3d10>(context, flags, resource, 0, errcode_ret);
}

cl_mem CL_API_CALL clCreateFromD3D10Texture2DKHR(cl_context context, cl_mem_flags flags,
                                                 ID3D10Texture2D* resource, UINT subresource,
                                                 cl_int* errcode_ret) noexcept {
  return sharing::CreateFromD3d<Direct3d10>(context, flags, resource, subresource, errcode_ret);
}

cl_mem CL_API_CALL clCreateFromD3D10Texture3DKHR(cl_context context, cl_mem_flags flags,
                                                 ID3D10Texture3D* resource, UINT subresource,
                                                 cl_int* errcode_ret) noexcept {
  return sharing::CreateFromD3d<Direct3d10>(context, flags, resource, subresource, errcode_ret);
}

cl_int CL_API_CALL clEnqueueAcquireD3D10ObjectsKHR(cl_command_queue command_queue,
                                                   cl_uint num_objects, const cl_mem* mem_objects,
                                                   cl_uint num_events_in_wait_list,
                                                   const cl_event* event_wait_list,
                                                   cl_event* event) noexcept {
  return sharing::AcquireD3d(
      Direct3d10::kTokens.api,
      {command_queue, num_objects, mem_objects, num_events_in_wait_list, event_wait_list, event});
}

cl_int CL_API_CALL clEnqueueReleaseD3D10ObjectsKHR(cl_command_queue command_queue,
                                                   cl_uint num_objects, const cl_mem* mem_objects,
                                                   cl_uint num_events_in_wait_list,
                                                   const cl_event* event_wait_list,
                                                   cl_event* event) noexcept {
  return sharing::ReleaseD3d(
      Direct3d10::kTokens.api,
      {command_queue, num_objects, mem_objects, num_events_in_wait_list, event_wait_list, event});
}

}  // namespace sluice::client::api
