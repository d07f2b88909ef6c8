// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/core/api_rules.h"

#include <CL/cl_egl.h>
#include <CL/cl_ext.h>
#include <CL/cl_gl.h>

#include "client_icd/include/CL/cl_sluice.h"

namespace sluice::client::sharing {
namespace {

// The headers of Direct3D's extensions include Windows' own, so their tokens are written out here.
// cl_khr_d3d10_sharing (OpenCL 2.2 Extension Specification, section 9.6.4).
constexpr cl_int kInvalidD3d10Resource = -1003;
constexpr cl_int kD3d10AlreadyAcquired = -1004;
constexpr cl_int kD3d10NotAcquired = -1005;
constexpr cl_mem_info kMemD3d10Resource = 0x4015;
constexpr cl_image_info kImageD3d10Subresource = 0x4016;
constexpr cl_command_type kAcquireD3d10 = 0x4017;
constexpr cl_command_type kReleaseD3d10 = 0x4018;
// cl_khr_d3d11_sharing (section 9.8.4); cl_nv_d3d11_sharing has the same values.
constexpr cl_int kInvalidD3d11Resource = -1007;
constexpr cl_int kD3d11AlreadyAcquired = -1008;
constexpr cl_int kD3d11NotAcquired = -1009;
constexpr cl_mem_info kMemD3d11Resource = 0x401E;
constexpr cl_image_info kImageD3d11Subresource = 0x401F;
constexpr cl_command_type kAcquireD3d11 = 0x4020;
constexpr cl_command_type kReleaseD3d11 = 0x4021;
// cl_khr_dx9_media_sharing (section 9.7.4).
constexpr cl_int kInvalidDx9Surface = -1011;
constexpr cl_int kDx9AlreadyAcquired = -1012;
constexpr cl_int kDx9NotAcquired = -1013;
constexpr cl_mem_info kMemDx9SurfaceInfo = 0x2029;
constexpr cl_image_info kImageDx9Plane = 0x202A;
constexpr cl_command_type kAcquireDx9 = 0x202B;
constexpr cl_command_type kReleaseDx9 = 0x202C;

// other_context differs because the texts do. EGL's, gralloc's and our own ask for valid memory
// objects "in the context associated with" the queue: one of another context is
// CL_INVALID_MEM_OBJECT. GL's and Direct3D's ask for valid ones only, which it is; their
// CL_INVALID_CONTEXT is of a queue whose context knows no GL or Direct3D. So the code is that of
// other enqueues (section 5.2): CL_INVALID_CONTEXT "if the context associated with command_queue
// and buffer are not the same".
constexpr ApiRules kRules[] = {
    // Section 9.4.6. Neither a second acquire nor a release of what is not acquired has a code, and
    // drivers let both pass. Use while released "will result in undefined behavior" (9.4.6.1): it
    // is refused here, since the contents would be old, with the code of objects that are none.
    {.api = Api::kGl,
     .name = "GL",
     .extension = "cl_khr_gl_sharing",
     .acquire_command = CL_COMMAND_ACQUIRE_GL_OBJECTS,
     .release_command = CL_COMMAND_RELEASE_GL_OBJECTS,
     .invalid_object = CL_INVALID_GL_OBJECT,
     .already_acquired = CL_SUCCESS,
     .release_not_acquired = CL_SUCCESS,
     .use_not_acquired = CL_INVALID_GL_OBJECT,
     .created_twice = CL_SUCCESS,
     .other_context = CL_INVALID_CONTEXT,
     .context_without_api = CL_INVALID_CONTEXT,
     .mem_param = 0,
     .image_param = 0,
     .no_param = CL_INVALID_VALUE},
    // Section 9.16.4: use while released has a code; release of what is not acquired has none in
    // the list, a second acquire neither.
    {.api = Api::kEgl,
     .name = "EGL",
     .extension = "cl_khr_egl_image",
     .acquire_command = CL_COMMAND_ACQUIRE_EGL_OBJECTS_KHR,
     .release_command = CL_COMMAND_RELEASE_EGL_OBJECTS_KHR,
     .invalid_object = CL_INVALID_EGL_OBJECT_KHR,
     .already_acquired = CL_SUCCESS,
     .release_not_acquired = CL_SUCCESS,
     .use_not_acquired = CL_EGL_RESOURCE_NOT_ACQUIRED_KHR,
     .created_twice = CL_SUCCESS,
     .other_context = CL_INVALID_MEM_OBJECT,
     .context_without_api = CL_SUCCESS,
     .mem_param = 0,
     .image_param = 0,
     .no_param = CL_INVALID_VALUE},
    // cl_img_use_gralloc_ptr, 9.19.2: "This function has no affect on memory objects in
    // <mem_objects> that have already been acquired, ignoring them silently."
    {.api = Api::kGralloc,
     .name = "gralloc",
     .extension = "cl_img_use_gralloc_ptr",
     .acquire_command = CL_COMMAND_ACQUIRE_GRALLOC_OBJECTS_IMG,
     .release_command = CL_COMMAND_RELEASE_GRALLOC_OBJECTS_IMG,
     .invalid_object = CL_INVALID_GRALLOC_OBJECT_IMG,
     .already_acquired = CL_SUCCESS,
     .release_not_acquired = CL_GRALLOC_RESOURCE_NOT_ACQUIRED_IMG,
     .use_not_acquired = CL_GRALLOC_RESOURCE_NOT_ACQUIRED_IMG,
     .created_twice = CL_SUCCESS,
     .other_context = CL_INVALID_MEM_OBJECT,
     .context_without_api = CL_SUCCESS,
     .mem_param = 0,
     .image_param = 0,
     .no_param = CL_INVALID_VALUE},
    // Sections 9.6.5 to 9.6.7.6.
    {.api = Api::kD3d10,
     .name = "D3D10",
     .extension = "cl_khr_d3d10_sharing",
     .orders_queue = true,
     .acquire_command = kAcquireD3d10,
     .release_command = kReleaseD3d10,
     .invalid_object = CL_INVALID_MEM_OBJECT,
     .already_acquired = kD3d10AlreadyAcquired,
     .release_not_acquired = kD3d10NotAcquired,
     .use_not_acquired = kD3d10NotAcquired,
     .created_twice = kInvalidD3d10Resource,
     .other_context = CL_INVALID_CONTEXT,
     .context_without_api = CL_INVALID_CONTEXT,
     .mem_param = kMemD3d10Resource,
     .image_param = kImageD3d10Subresource,
     .no_param = kInvalidD3d10Resource},
    // Sections 9.8.5 to 9.8.7.6.
    {.api = Api::kD3d11,
     .name = "D3D11",
     .extension = "cl_khr_d3d11_sharing",
     .orders_queue = true,
     .acquire_command = kAcquireD3d11,
     .release_command = kReleaseD3d11,
     .invalid_object = CL_INVALID_MEM_OBJECT,
     .already_acquired = kD3d11AlreadyAcquired,
     .release_not_acquired = kD3d11NotAcquired,
     .use_not_acquired = kD3d11NotAcquired,
     .created_twice = kInvalidD3d11Resource,
     .other_context = CL_INVALID_CONTEXT,
     .context_without_api = CL_INVALID_CONTEXT,
     .mem_param = kMemD3d11Resource,
     .image_param = kImageD3d11Subresource,
     .no_param = kInvalidD3d11Resource},
    // Sections 9.7.5 to 9.7.7.4. A second memory object has no code in the list; the sister
    // extensions' rule is taken.
    {.api = Api::kDx9Media,
     .name = "DX9 media",
     .extension = "cl_khr_dx9_media_sharing",
     .orders_queue = true,
     .acquire_command = kAcquireDx9,
     .release_command = kReleaseDx9,
     .invalid_object = CL_INVALID_MEM_OBJECT,
     .already_acquired = kDx9AlreadyAcquired,
     .release_not_acquired = kDx9NotAcquired,
     .use_not_acquired = kDx9NotAcquired,
     .created_twice = kInvalidDx9Surface,
     .other_context = CL_INVALID_CONTEXT,
     .context_without_api = CL_INVALID_CONTEXT,
     .mem_param = kMemDx9SurfaceInfo,
     .image_param = kImageDx9Plane,
     .no_param = kInvalidDx9Surface},
    // cl_sluice_shared_resource.
    {.api = Api::kSluice,
     .name = "shared resource",
     .extension = "cl_sluice_shared_resource",
     .acquire_command = CL_COMMAND_ACQUIRE_SHARED_RESOURCES_SLUICE,
     .release_command = CL_COMMAND_RELEASE_SHARED_RESOURCES_SLUICE,
     .invalid_object = CL_INVALID_SHARED_RESOURCE_SLUICE,
     .already_acquired = CL_SHARED_RESOURCE_ALREADY_ACQUIRED_SLUICE,
     .release_not_acquired = CL_SHARED_RESOURCE_NOT_ACQUIRED_SLUICE,
     .use_not_acquired = CL_SHARED_RESOURCE_NOT_ACQUIRED_SLUICE,
     .created_twice = CL_SUCCESS,
     .other_context = CL_INVALID_MEM_OBJECT,
     .context_without_api = CL_SUCCESS,
     .mem_param = 0,
     .image_param = 0,
     .no_param = CL_INVALID_VALUE},
};

}  // namespace

const ApiRules& RulesOf(Api api) {
  for (const ApiRules& rules : kRules) {
    if (rules.api == api) return rules;
  }
  __builtin_unreachable();  // Every API has a row: api_rules_test.
}

const ApiRules* RulesOfMemParam(cl_mem_info param) {
  for (const ApiRules& rules : kRules) {
    if (rules.mem_param != 0 && rules.mem_param == param) return &rules;
  }
  return nullptr;
}

const ApiRules* RulesOfImageParam(cl_image_info param) {
  for (const ApiRules& rules : kRules) {
    if (rules.image_param != 0 && rules.image_param == param) return &rules;
  }
  return nullptr;
}

}  // namespace sluice::client::sharing
