/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sluice's own tokens for OpenCL. C, for applications; include after CL/cl.h or alone.
 *
 * Values. Khronos hands out enums in blocks of 16 upwards from 0x4000 and has reached 0x42xx; the
 * core uses 0x0900-0x13FF, the KHR and EXT extensions 0x2000-0x20FF, vendors up to 0x410xx. Sluice
 * has no block of its own. Its tokens therefore lie from 0x534C0000 ("SL") on, where no sequential
 * hand-out will come in the lifetime of OpenCL, and error codes are the negatives of such values.
 *   0x534C0000-0x534C00FF  sharing in general
 *   0x534C0100-0x534C01FF  cl_sluice_shared_resource
 */
#ifndef CL_SLUICE_H_
#define CL_SLUICE_H_

#include <CL/cl.h>

#ifdef __cplusplus
extern "C" {
#endif

/* clGetMemObjectInfo: how the bytes of a shared memory object travel between the native object and
 * the device, as a cl_sluice_sharing_way. CL_INVALID_VALUE for a memory object that is not shared.
 */
#define CL_MEM_SHARING_WAY_SLUICE 0x534C0000

typedef cl_uint cl_sluice_sharing_way;
/* They do not: the device uses the native object's own memory. */
#define CL_SHARING_WAY_IMPORT_SLUICE 1
/* Acquire and release are copies on the device, to and from memory that both sides see. */
#define CL_SHARING_WAY_SHADOW_SLUICE 2
/* Acquire and release copy through memory of the application's process. */
#define CL_SHARING_WAY_STAGING_SLUICE 3

/* cl_sluice_shared_resource: memory objects made from resources that the daemon owns. */
#define CL_SLUICE_SHARED_RESOURCE_EXTENSION_VERSION CL_MAKE_VERSION(1, 2, 0)
#define CL_COMMAND_ACQUIRE_SHARED_RESOURCES_SLUICE 0x534C0100
#define CL_COMMAND_RELEASE_SHARED_RESOURCES_SLUICE 0x534C0101
#define CL_INVALID_SHARED_RESOURCE_SLUICE (-0x534C0102)
#define CL_SHARED_RESOURCE_ALREADY_ACQUIRED_SLUICE (-0x534C0103)
#define CL_SHARED_RESOURCE_NOT_ACQUIRED_SLUICE (-0x534C0104)
/* clGetMemObjectInfo, a cl_bool: when it was last acquired, the contents may have been
 * half-written. */
#define CL_MEM_SHARED_RESOURCE_INDETERMINATE_SLUICE 0x534C0105

/* `capability`: the 24 bytes of a sluice_capability (sluice/sluice.h). */
typedef cl_mem(CL_API_CALL* clCreateFromSharedResourceSLUICE_fn)(cl_context context,
                                                                 cl_mem_flags flags,
                                                                 const void* capability,
                                                                 cl_uint plane,
                                                                 cl_int* errcode_ret);
typedef cl_int(CL_API_CALL* clEnqueueAcquireSharedResourcesSLUICE_fn)(
    cl_command_queue command_queue, cl_uint num_objects, const cl_mem* mem_objects,
    cl_uint num_events_in_wait_list, const cl_event* event_wait_list, cl_event* event);
typedef cl_int(CL_API_CALL* clEnqueueReleaseSharedResourcesSLUICE_fn)(
    cl_command_queue command_queue, cl_uint num_objects, const cl_mem* mem_objects,
    cl_uint num_events_in_wait_list, const cl_event* event_wait_list, cl_event* event);

#ifdef __cplusplus
}
#endif

#endif /* CL_SLUICE_H_ */
