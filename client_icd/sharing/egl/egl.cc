// SPDX-License-Identifier: Apache-2.0
// cl_khr_egl_image: memory objects made from EGLImages (OpenCL 2.2 Extension Specification, section
// 9.16). An image is bound to a texture of ours (GL_OES_EGL_image) in a context of ours that shares
// with nobody: EGLImages belong to their display, so that any OpenCL context takes them.
#include <CL/cl_egl.h>

#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "client_icd/base/api.h"
#include "client_icd/objects/memory.h"
#include "client_icd/sharing/core/core.h"
#include "client_icd/sharing/gl/gl_image.h"
#include "client_icd/sharing/gl/gl_object.h"

namespace sluice::client {
namespace sharing {
namespace {

// One context of ours per display, for as long as memory objects need it.
cl_int ShareOfDisplay(void* display, std::shared_ptr<GlShare>* out) {
  // Never destroyed: a process may end at any time.
  static auto* const mu = new absl::Mutex;
  static auto* const shares = new absl::flat_hash_map<void*, std::weak_ptr<GlShare>>;
  absl::MutexLock lock(mu);
  std::weak_ptr<GlShare>& known = (*shares)[display];
  *out = known.lock();
  if (*out != nullptr) return CL_SUCCESS;
  const cl_int status = GlShare::Open({GlContextRef::Kind::kEgl, display, nullptr}, out);
  if (status == CL_SUCCESS) known = *out;
  return status;
}

// Section 9.16.4: CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY and CL_MEM_READ_WRITE and, since OpenCL 1.2,
// CL_MEM_HOST_WRITE_ONLY, CL_MEM_HOST_READ_ONLY or CL_MEM_HOST_NO_ACCESS.
cl_int CheckEglFlags(cl_mem_flags* flags) {
  constexpr cl_mem_flags kAccess = CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY | CL_MEM_READ_WRITE;
  constexpr cl_mem_flags kHost =
      CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS;
  if ((*flags & ~(kAccess | kHost)) != 0) return CL_INVALID_VALUE;
  if ((*flags & kAccess) == 0) *flags |= CL_MEM_READ_WRITE;
  return CheckMemFlags(*flags);
}

cl_int CreateFromEglImage(Context* context, void* display, void* image, cl_mem_flags flags,
                          const cl_egl_image_properties_khr* properties, Ref<MemObject>* out) {
  // CL_INVALID_VALUE if properties contains invalid values (none is supported), if display is not a
  // valid display object or if flags are not in the set defined above.
  if (properties != nullptr && properties[0] != 0) return CL_INVALID_VALUE;
  CL_RETURN_IF_ERROR(CheckEglFlags(&flags));
  if (display == nullptr) return CL_INVALID_VALUE;
  // CL_INVALID_OPERATION if there are no devices in context that support images.
  if (!context->supports_images()) return CL_INVALID_OPERATION;
  // CL_INVALID_EGL_OBJECT_KHR if image is not a valid EGLImage object.
  if (image == nullptr) return CL_INVALID_EGL_OBJECT_KHR;
  std::shared_ptr<GlShare> share;
  const cl_int opened = ShareOfDisplay(display, &share);
  if (opened == CL_OUT_OF_RESOURCES || opened == CL_OUT_OF_HOST_MEMORY) return opened;
  if (opened != CL_SUCCESS) return CL_INVALID_VALUE;
  std::unique_ptr<GlObject> object;
  CL_RETURN_IF_ERROR(GlObject::Make(
      std::move(share),
      [image](GlContexts& contexts, std::unique_ptr<GlHolding>* holding) {
        return HoldEglImage(contexts, image, holding);
      },
      &object));
  const cl_int made = CreateFromGlObject(context, flags, Api::kEgl, std::move(object), out);
  // CL_IMAGE_FORMAT_NOT_SUPPORTED if the OpenCL implementation is not able to create a cl_mem
  // compatible with the provided image for an implementation-dependent reason.
  return made == CL_INVALID_IMAGE_SIZE ? CL_IMAGE_FORMAT_NOT_SUPPORTED : made;
}

}  // namespace
}  // namespace sharing

namespace api {

cl_mem CL_API_CALL clCreateFromEGLImageKHR(cl_context context_handle, CLeglDisplayKHR display,
                                           CLeglImageKHR image, cl_mem_flags flags,
                                           const cl_egl_image_properties_khr* properties,
                                           cl_int* errcode_ret) noexcept {
  Context* context = Context::From(context_handle);
  if (context == nullptr) return Fail(errcode_ret, CL_INVALID_CONTEXT);
  Ref<MemObject> memory;
  const cl_int status =
      sharing::CreateFromEglImage(context, display, image, flags, properties, &memory);
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  Succeed(errcode_ret);
  return memory.Detach()->handle();
}

cl_int CL_API_CALL clEnqueueAcquireEGLObjectsKHR(cl_command_queue command_queue,
                                                 cl_uint num_objects, const cl_mem* mem_objects,
                                                 cl_uint num_events_in_wait_list,
                                                 const cl_event* event_wait_list,
                                                 cl_event* event) noexcept {
  return sharing::EnqueueAcquire(
      sharing::Api::kEgl,
      {command_queue, num_objects, mem_objects, num_events_in_wait_list, event_wait_list, event});
}

cl_int CL_API_CALL clEnqueueReleaseEGLObjectsKHR(cl_command_queue command_queue,
                                                 cl_uint num_objects, const cl_mem* mem_objects,
                                                 cl_uint num_events_in_wait_list,
                                                 const cl_event* event_wait_list,
                                                 cl_event* event) noexcept {
  return sharing::EnqueueRelease(
      sharing::Api::kEgl,
      {command_queue, num_objects, mem_objects, num_events_in_wait_list, event_wait_list, event});
}

}  // namespace api
}  // namespace sluice::client
