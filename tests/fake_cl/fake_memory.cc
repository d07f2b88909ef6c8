// SPDX-License-Identifier: Apache-2.0
// Buffers, images, pipes and SVM: what they are made of.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tests/fake_cl/fake_objects.h"

namespace sluice::fake {
namespace {

// More than a test needs; keeps the fuzzer's machine alive.
constexpr size_t kMostBytes = size_t{1} << 30;

size_t ElementBytes(const cl_image_format& format) {
  size_t channels = 4;
  if (format.image_channel_order == CL_R || format.image_channel_order == CL_A) channels = 1;
  if (format.image_channel_order == CL_RG) channels = 2;
  switch (format.image_channel_data_type) {
    case CL_UNORM_INT8:
    case CL_SIGNED_INT8:
    case CL_UNSIGNED_INT8:
      return channels;
    case CL_SIGNED_INT16:
    case CL_UNSIGNED_INT16:
    case CL_HALF_FLOAT:
      return channels * 2;
    case CL_SIGNED_INT32:
    case CL_UNSIGNED_INT32:
    case CL_FLOAT:
      return channels * 4;
    default:
      return 0;
  }
}

bool SetExtent(cl_mem image) {
  const cl_image_desc& desc = image->desc;
  size_t* const extent = image->extent;
  extent[0] = desc.image_width;
  extent[1] = extent[2] = 1;
  switch (desc.image_type) {
    case CL_MEM_OBJECT_IMAGE1D:
    case CL_MEM_OBJECT_IMAGE1D_BUFFER:
      break;
    case CL_MEM_OBJECT_IMAGE1D_ARRAY:
      extent[1] = desc.image_array_size;
      break;
    case CL_MEM_OBJECT_IMAGE2D:
      extent[1] = desc.image_height;
      break;
    case CL_MEM_OBJECT_IMAGE2D_ARRAY:
      extent[1] = desc.image_height;
      extent[2] = desc.image_array_size;
      break;
    case CL_MEM_OBJECT_IMAGE3D:
      extent[1] = desc.image_height;
      extent[2] = desc.image_depth;
      break;
    default:
      return false;
  }
  return extent[0] != 0 && extent[1] != 0 && extent[2] != 0;
}

}  // namespace

cl_mem CL_API_CALL fake_clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size,
                                       void* host, cl_int* status) {
  if (size == 0 || size > kMostBytes) return Set(status, CL_INVALID_BUFFER_SIZE), nullptr;
  if ((flags & CL_MEM_READ_ONLY) != 0 && (flags & CL_MEM_WRITE_ONLY) != 0) {
    return Set(status, CL_INVALID_VALUE), nullptr;
  }
  const bool takes_host = (flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR)) != 0;
  if (takes_host != (host != nullptr)) return Set(status, CL_INVALID_HOST_PTR), nullptr;
  auto* const memory = new _cl_mem;
  memory->flags = flags;
  memory->size = size;
  if ((flags & CL_MEM_USE_HOST_PTR) != 0) {
    memory->data = static_cast<uint8_t*>(host);
    memory->host_ptr = host;
  } else {
    memory->storage.assign(size, 0xcd);  // As if another tenant had left it there.
    memory->data = memory->storage.data();
    if (host != nullptr) std::memcpy(memory->data, host, size);
  }
  if (host != nullptr) NoteBytes(host, std::min<size_t>(size, 1024));
  const std::lock_guard lock(g_runtime->mu);
  memory->context = Ref(context);
  return Set(status, CL_SUCCESS), memory;
}

cl_mem CL_API_CALL fake_clCreateBufferWithProperties(cl_context context,
                                                     const cl_mem_properties* properties,
                                                     cl_mem_flags flags, size_t size, void* host,
                                                     cl_int* status) {
  size_t length = 0;
  while (properties != nullptr && properties[length] != 0) length += 2;
  Note("properties", reinterpret_cast<const size_t*>(properties), length);
  const cl_mem memory = fake_clCreateBuffer(context, flags, size, host, status);
  // An import takes the descriptor.
  if (memory != nullptr && length != 0 &&
      properties[0] == CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR) {
    ::close(static_cast<int>(properties[1]));
  }
  return memory;
}

cl_mem CL_API_CALL fake_clCreateSubBuffer(cl_mem parent, cl_mem_flags flags, cl_buffer_create_type,
                                          const void* info, cl_int* status) {
  const auto& region = *static_cast<const cl_buffer_region*>(info);
  const size_t noted[] = {region.origin, region.size};
  Note("region", noted, 2);
  if (parent->parent != nullptr || parent->type != CL_MEM_OBJECT_BUFFER) {
    return Set(status, CL_INVALID_MEM_OBJECT), nullptr;
  }
  if (region.size == 0) return Set(status, CL_INVALID_BUFFER_SIZE), nullptr;
  if (!Fits(region.origin, region.size, parent->size))
    return Set(status, CL_INVALID_VALUE), nullptr;
  const std::lock_guard lock(g_runtime->mu);
  auto* const memory = new _cl_mem;
  memory->context = Ref(parent->context);
  memory->parent = Ref(parent);
  memory->flags = flags;
  memory->size = region.size;
  memory->data = parent->data + region.origin;
  return Set(status, CL_SUCCESS), memory;
}

cl_mem CL_API_CALL fake_clCreatePipe(cl_context context, cl_mem_flags flags, cl_uint packet,
                                     cl_uint most, const cl_pipe_properties*, cl_int* status) {
  if (packet == 0 || most == 0) return Set(status, CL_INVALID_PIPE_SIZE), nullptr;
  const std::lock_guard lock(g_runtime->mu);
  auto* const memory = new _cl_mem;
  memory->context = Ref(context);
  memory->flags = flags;
  memory->type = CL_MEM_OBJECT_PIPE;
  return Set(status, CL_SUCCESS), memory;
}

cl_mem CL_API_CALL fake_clCreateImage(cl_context context, cl_mem_flags flags,
                                      const cl_image_format* format, const cl_image_desc* desc,
                                      void* host, cl_int* status) {
  auto* const memory = new _cl_mem;
  memory->type = desc->image_type;
  memory->flags = flags;
  memory->format = *format;
  memory->desc = *desc;
  memory->element = ElementBytes(*format);
  size_t bytes = memory->element;
  const bool known = SetExtent(memory);
  cl_int result = CL_SUCCESS;
  if (memory->element == 0) result = CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
  const bool takes_host = (flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR)) != 0;
  if (takes_host != (host != nullptr)) result = CL_INVALID_HOST_PTR;
  if (!known) result = CL_INVALID_IMAGE_DESCRIPTOR;
  for (const size_t extent : memory->extent) {
    if (__builtin_mul_overflow(bytes, extent, &bytes) || bytes > kMostBytes) {
      result = CL_INVALID_IMAGE_SIZE;
    }
  }
  const cl_mem parent = desc->mem_object;
  if (parent != nullptr && (parent->data == nullptr || parent->size < bytes)) {
    result = CL_INVALID_IMAGE_SIZE;
  }
  if (result != CL_SUCCESS) {
    delete memory;
    return Set(status, result), nullptr;
  }
  memory->size = bytes;
  memory->row_pitch =
      desc->image_row_pitch != 0 ? desc->image_row_pitch : memory->element * memory->extent[0];
  if (parent != nullptr) {
    memory->data = parent->data;
  } else if ((flags & CL_MEM_USE_HOST_PTR) != 0) {
    memory->data = static_cast<uint8_t*>(host);
    memory->host_ptr = host;
  } else {
    memory->storage.assign(bytes, 0xcd);
    memory->data = memory->storage.data();
    if (host != nullptr) std::memcpy(memory->data, host, bytes);
  }
  Note("extent", memory->extent, 3);
  const std::lock_guard lock(g_runtime->mu);
  memory->context = Ref(context);
  memory->parent = Ref(parent);
  return Set(status, CL_SUCCESS), memory;
}

cl_mem CL_API_CALL fake_clCreateImageWithProperties(
    cl_context context, const cl_mem_properties* properties, cl_mem_flags flags,
    const cl_image_format* format, const cl_image_desc* desc, void* host, cl_int* status) {
  size_t length = 0;
  while (properties != nullptr && properties[length] != 0) length += 2;
  Note("properties", reinterpret_cast<const size_t*>(properties), length);
  return fake_clCreateImage(context, flags, format, desc, host, status);
}

cl_int CL_API_CALL fake_clGetSupportedImageFormats(cl_context, cl_mem_flags, cl_mem_object_type,
                                                   cl_uint room, cl_image_format* out,
                                                   cl_uint* count) {
  const cl_image_format formats[] = {{CL_RGBA, CL_UNORM_INT8}, {CL_R, CL_FLOAT}};
  for (cl_uint i = 0; out != nullptr && i < room && i < 2; ++i) out[i] = formats[i];
  if (count != nullptr) *count = 2;
  return CL_SUCCESS;
}

cl_int CL_API_CALL fake_clRetainMemObject(cl_mem memory) {
  const std::lock_guard lock(g_runtime->mu);
  Ref(memory);
  return CL_SUCCESS;
}

cl_int CL_API_CALL fake_clReleaseMemObject(cl_mem memory) {
  {
    const std::lock_guard lock(g_runtime->mu);
    Drop(memory);
  }
  g_runtime->Kick();
  return CL_SUCCESS;
}

cl_int CL_API_CALL fake_clSetMemObjectDestructorCallback(cl_mem memory,
                                                         void(CL_CALLBACK* function)(cl_mem, void*),
                                                         void* data) {
  const std::lock_guard lock(g_runtime->mu);
  if (!g_runtime->has_callbacks) return CL_INVALID_OPERATION;
  memory->destructors.push_back({function, data});
  return CL_SUCCESS;
}

void* CL_API_CALL fake_clSVMAlloc(cl_context, cl_svm_mem_flags, size_t size, cl_uint) {
  return size == 0 || size > kMostBytes ? nullptr : std::malloc(size);
}

void CL_API_CALL fake_clSVMFree(cl_context, void* pointer) { std::free(pointer); }

}  // namespace sluice::fake
