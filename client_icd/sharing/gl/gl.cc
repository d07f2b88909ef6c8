// SPDX-License-Identifier: Apache-2.0
// cl_khr_gl_sharing: memory objects made from GL buffers, textures and renderbuffers (OpenCL 2.2
// Extension Specification, section 9.4). Which context properties make a context share is in
// gl_context.cc; how the objects are held and copied, in gl_holding.h.
#include <CL/cl_gl.h>

#include <utility>

#include "client_icd/base/api.h"
#include "client_icd/objects/memory.h"
#include "client_icd/sharing/core/core.h"
#include "client_icd/sharing/gl/gl_image.h"
#include "client_icd/sharing/gl/gl_object.h"
#include "client_icd/sharing/gl/gl_sync.h"

namespace sluice::client {
namespace sharing {
namespace {

std::shared_ptr<GlShare> ShareOf(const Context& context) {
  GlShare* share = static_cast<GlShare*>(context.Interop(Api::kGl));
  return share == nullptr ? nullptr : share->shared_from_this();
}

// A memory object of what `hold` holds: a buffer, or the image that its description asks for.
cl_mem CreateFromGl(cl_context context_handle, cl_mem_flags flags, GlObject::Hold hold,
                    cl_int* errcode_ret) {
  // CL_INVALID_CONTEXT if context is not a valid context or was not created from a GL context.
  Context* context = Context::From(context_handle);
  if (context == nullptr) return Fail(errcode_ret, CL_INVALID_CONTEXT);
  std::shared_ptr<GlShare> share = ShareOf(*context);
  if (share == nullptr) return Fail(errcode_ret, CL_INVALID_CONTEXT);
  // CL_INVALID_VALUE if values specified in flags are not valid.
  cl_int status = CheckAccessFlags(&flags);
  std::unique_ptr<GlObject> object;
  if (status == CL_SUCCESS) status = GlObject::Make(std::move(share), std::move(hold), &object);
  Ref<MemObject> memory;
  if (status == CL_SUCCESS) {
    status = CreateFromGlObject(context, flags, Api::kGl, std::move(object), &memory);
  }
  // CL_INVALID_IMAGE_FORMAT_DESCRIPTOR if the internal format does not map to a supported OpenCL
  // image format.
  if (status == CL_IMAGE_FORMAT_NOT_SUPPORTED) status = CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  Succeed(errcode_ret);
  return memory.Detach()->handle();
}

// Section 9.4.3's list.
bool IsTextureTarget(GLenum target) {
  switch (target) {
    case GL_TEXTURE_1D:
    case GL_TEXTURE_1D_ARRAY:
    case GL_TEXTURE_BUFFER:
    case GL_TEXTURE_3D:
    case GL_TEXTURE_2D_ARRAY:
      return true;
    default:
      return IsTwoDimensionalTarget(target);
  }
}

cl_mem CreateFromTexture(cl_context context, cl_mem_flags flags, bool target_is_valid,
                         GLenum target, GLint level, GLuint texture, cl_int* errcode_ret) {
  // CL_INVALID_VALUE if value specified in texture_target is not one of the values specified in the
  // description of texture_target; after the context, as the list has it.
  const Context* known = Context::From(context);
  if (known != nullptr && known->Interop(Api::kGl) != nullptr && !target_is_valid) {
    return Fail(errcode_ret, CL_INVALID_VALUE);
  }
  return CreateFromGl(
      context, flags,
      [=](GlContexts& contexts, std::unique_ptr<GlHolding>* out) {
        return HoldGlTexture(contexts, target, level, texture, out);
      },
      errcode_ret);
}

// The GL object that the memory object was made from; null if it was not.
const GlDescription* DescriptionOf(const MemObject& memory) {
  SharedObject* shared = FindShared(memory, Api::kGl);
  return shared == nullptr ? nullptr : &static_cast<GlObject&>(shared->native()).about();
}

}  // namespace
}  // namespace sharing

namespace api {

cl_mem CL_API_CALL clCreateFromGLBuffer(cl_context context, cl_mem_flags flags, cl_GLuint bufobj,
                                        cl_int* errcode_ret) noexcept {
  using namespace sharing;  // NOLINT(google-build-using-namespace)
  return CreateFromGl(
      context, flags,
      [bufobj](GlContexts& contexts, std::unique_ptr<GlHolding>* out) {
        return HoldGlBuffer(contexts, bufobj, out);
      },
      errcode_ret);
}

cl_mem CL_API_CALL clCreateFromGLTexture(cl_context context, cl_mem_flags flags, cl_GLenum target,
                                         cl_GLint miplevel, cl_GLuint texture,
                                         cl_int* errcode_ret) noexcept {
  return sharing::CreateFromTexture(context, flags, sharing::IsTextureTarget(target), target,
                                    miplevel, texture, errcode_ret);
}

// OpenCL 1.1, section 9.8.3: two-dimensional textures and faces of cube maps.
cl_mem CL_API_CALL clCreateFromGLTexture2D(cl_context context, cl_mem_flags flags, cl_GLenum target,
                                           cl_GLint miplevel, cl_GLuint texture,
                                           cl_int* errcode_ret) noexcept {
  return sharing::CreateFromTexture(context, flags, sharing::IsTwoDimensionalTarget(target), target,
                                    miplevel, texture, errcode_ret);
}

cl_mem CL_API_CALL clCreateFromGLTexture3D(cl_context context, cl_mem_flags flags, cl_GLenum target,
                                           cl_GLint miplevel, cl_GLuint texture,
                                           cl_int* errcode_ret) noexcept {
  return sharing::CreateFromTexture(context, flags, target == GL_TEXTURE_3D, target, miplevel,
                                    texture, errcode_ret);
}

cl_mem CL_API_CALL clCreateFromGLRenderbuffer(cl_context context, cl_mem_flags flags,
                                              cl_GLuint renderbuffer,
                                              cl_int* errcode_ret) noexcept {
  using namespace sharing;  // NOLINT(google-build-using-namespace)
  return CreateFromGl(
      context, flags,
      [renderbuffer](GlContexts& contexts, std::unique_ptr<GlHolding>* out) {
        return HoldGlRenderbuffer(contexts, renderbuffer, out);
      },
      errcode_ret);
}

// Section 9.4.5: CL_INVALID_MEM_OBJECT, CL_INVALID_GL_OBJECT if there is no GL object associated
// with memobj.
cl_int CL_API_CALL clGetGLObjectInfo(cl_mem memobj, cl_gl_object_type* gl_object_type,
                                     cl_GLuint* gl_object_name) noexcept {
  const MemObject* memory = MemObject::From(memobj);
  if (memory == nullptr) return CL_INVALID_MEM_OBJECT;
  const sharing::GlDescription* about = sharing::DescriptionOf(*memory);
  if (about == nullptr) return CL_INVALID_GL_OBJECT;
  if (gl_object_type != nullptr) *gl_object_type = about->type;
  if (gl_object_name != nullptr) *gl_object_name = about->name;
  return CL_SUCCESS;
}

cl_int CL_API_CALL clGetGLTextureInfo(cl_mem memobj, cl_gl_texture_info param_name,
                                      size_t param_value_size, void* param_value,
                                      size_t* param_value_size_ret) noexcept {
  const MemObject* memory = MemObject::From(memobj);
  if (memory == nullptr) return CL_INVALID_MEM_OBJECT;
  // CL_INVALID_GL_OBJECT if there is no GL texture object associated with memobj.
  const sharing::GlDescription* about = sharing::DescriptionOf(*memory);
  if (about == nullptr || about->target == 0) return CL_INVALID_GL_OBJECT;
  // CL_INVALID_VALUE if param_value and param_value_size_ret are NULL.
  if (param_value == nullptr && param_value_size_ret == nullptr) return CL_INVALID_VALUE;
  const InfoSink sink(param_value_size, param_value, param_value_size_ret);
  switch (param_name) {
    case CL_GL_TEXTURE_TARGET:
      return sink.Value<cl_GLenum>(about->target);
    case CL_GL_MIPMAP_LEVEL:
      return sink.Value<cl_GLint>(about->level);
    default:
      return CL_INVALID_VALUE;
  }
}

cl_int CL_API_CALL clEnqueueAcquireGLObjects(cl_command_queue command_queue, cl_uint num_objects,
                                             const cl_mem* mem_objects,
                                             cl_uint num_events_in_wait_list,
                                             const cl_event* event_wait_list,
                                             cl_event* event) noexcept {
  return sharing::AcquireGlObjects(
      {command_queue, num_objects, mem_objects, num_events_in_wait_list, event_wait_list, event});
}

cl_int CL_API_CALL clEnqueueReleaseGLObjects(cl_command_queue command_queue, cl_uint num_objects,
                                             const cl_mem* mem_objects,
                                             cl_uint num_events_in_wait_list,
                                             const cl_event* event_wait_list,
                                             cl_event* event) noexcept {
  return sharing::ReleaseGlObjects(
      {command_queue, num_objects, mem_objects, num_events_in_wait_list, event_wait_list, event});
}

}  // namespace api
}  // namespace sluice::client
