// SPDX-License-Identifier: Apache-2.0
// Declares every entry point, by the type that CL/cl_icd.h gives its slot of the dispatch table, in
// namespace sluice::client::api. They are C++ names on purpose: the application's libOpenCL exports
// the C names, and a call from here must never find those.
//
// Define them in `namespace sluice::client::api` exactly as cl.h spells them, with `CL_API_CALL`
// and `noexcept`. To call one from another write `api::clFoo(...)`: unqualified, the compiler also
// finds cl.h's declaration through the arguments.
#pragma once

#include <CL/cl_icd.h>

#include <type_traits>

namespace sluice::client {
namespace internal {

// The same function type, noexcept. Slots without a type (void*) declare nothing that could be
// defined.
template <typename Pointer>
struct EntryPoint {
  struct NoSuchEntryPoint {};
  using Type = NoSuchEntryPoint();
};
template <typename R, typename... Args>
struct EntryPoint<R(CL_API_CALL*)(Args...)> {
  using Type = R CL_API_CALL(Args...) noexcept;
};

}  // namespace internal

namespace api {

#define ICD_ENTRY(name, kind) ICD_DECLARE_##kind(name)
#define ICD_DECLARE_wire(name) internal::EntryPoint<decltype(cl_icd_dispatch::name)>::Type name;
#define ICD_DECLARE_local(name) internal::EntryPoint<decltype(cl_icd_dispatch::name)>::Type name;
#define ICD_DECLARE_quick(name) internal::EntryPoint<decltype(cl_icd_dispatch::name)>::Type name;
#define ICD_DECLARE_alias(name) internal::EntryPoint<decltype(cl_icd_dispatch::name)>::Type name;
#define ICD_DECLARE_gl(name) internal::EntryPoint<decltype(cl_icd_dispatch::name)>::Type name;
#define ICD_DECLARE_egl(name) internal::EntryPoint<decltype(cl_icd_dispatch::name)>::Type name;
#define ICD_DECLARE_direct3d(name) internal::EntryPoint<decltype(cl_icd_dispatch::name)>::Type name;
#define ICD_DECLARE_unsupported(name)
#include "client_icd/base/icd_surface.inc"
#undef ICD_DECLARE_wire
#undef ICD_DECLARE_local
#undef ICD_DECLARE_quick
#undef ICD_DECLARE_alias
#undef ICD_DECLARE_gl
#undef ICD_DECLARE_egl
#undef ICD_DECLARE_direct3d
#undef ICD_DECLARE_unsupported

// Functions without a slot, found by clGetExtensionFunctionAddress.
cl_int CL_API_CALL clEnqueueAcquireGrallocObjectsIMG(cl_command_queue command_queue,
                                                     cl_uint num_objects, const cl_mem* mem_objects,
                                                     cl_uint num_events_in_wait_list,
                                                     const cl_event* event_wait_list,
                                                     cl_event* event) noexcept;
cl_int CL_API_CALL clEnqueueReleaseGrallocObjectsIMG(cl_command_queue command_queue,
                                                     cl_uint num_objects, const cl_mem* mem_objects,
                                                     cl_uint num_events_in_wait_list,
                                                     const cl_event* event_wait_list,
                                                     cl_event* event) noexcept;
cl_program CL_API_CALL clCreateProgramWithILKHR(cl_context context, const void* il, size_t length,
                                                cl_int* errcode_ret) noexcept;
cl_mem CL_API_CALL clCreateFromSharedResourceSLUICE(cl_context context, cl_mem_flags flags,
                                                    const void* capability, cl_uint plane,
                                                    cl_int* errcode_ret) noexcept;
cl_int CL_API_CALL clEnqueueAcquireSharedResourcesSLUICE(
    cl_command_queue command_queue, cl_uint num_objects, const cl_mem* mem_objects,
    cl_uint num_events_in_wait_list, const cl_event* event_wait_list, cl_event* event) noexcept;
cl_int CL_API_CALL clEnqueueReleaseSharedResourcesSLUICE(
    cl_command_queue command_queue, cl_uint num_objects, const cl_mem* mem_objects,
    cl_uint num_events_in_wait_list, const cl_event* event_wait_list, cl_event* event) noexcept;
cl_command_queue CL_API_CALL clCreateCommandQueueWithPropertiesKHR(
    cl_context context, cl_device_id device, const cl_queue_properties_khr* properties,
    cl_int* errcode_ret) noexcept;
cl_int CL_API_CALL clGetKernelSuggestedLocalWorkSizeKHR(cl_command_queue command_queue,
                                                        cl_kernel kernel, cl_uint work_dim,
                                                        const size_t* global_work_offset,
                                                        const size_t* global_work_size,
                                                        size_t* suggested_local_work_size) noexcept;

cl_int CL_API_CALL clTerminateContextKHR(cl_context context) noexcept;

}  // namespace api
}  // namespace sluice::client
