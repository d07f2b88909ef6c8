// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/memory/host_memory.h"

#include <algorithm>
#include <cstring>

#include "daemon/worker/memory/transfers.h"
#include "daemon/worker/own_questions.h"

namespace sluice::worker {
namespace {

constexpr size_t kBytes = 4096;

struct alignas(4096) Page {
  cl_uchar bytes[kBytes] = {};
};

cl_image_desc SmallImage(cl_mem_object_type type) {
  cl_image_desc desc = {};
  desc.image_type = type;
  desc.image_width = 4;
  const bool layered = type == CL_MEM_OBJECT_IMAGE1D_ARRAY || type == CL_MEM_OBJECT_IMAGE2D_ARRAY;
  if (type != CL_MEM_OBJECT_IMAGE1D && type != CL_MEM_OBJECT_IMAGE1D_ARRAY) desc.image_height = 3;
  if (type == CL_MEM_OBJECT_IMAGE3D) desc.image_depth = 2;
  if (layered) desc.image_array_size = 2;
  return desc;
}

// Writes and reads the whole image through the driver, and looks at the memory.
bool KeepsElementsInPlace(const MemoryObject& image, const wire::ImageLayout& layout, Page* page) {
  const cl_command_queue queue = image.context->own_queue.get();
  const size_t origin[3] = {0, 0, 0};
  const size_t row_bytes = layout.extent.v[0] * layout.element_bytes;
  const size_t slice_pitch = HostSlicePitch(image, row_bytes, layout.extent.v[1]);
  Page other;
  for (size_t i = 0; i < layout.bytes; ++i) other.bytes[i] = static_cast<cl_uchar>(i + 1);
  if (cl().clEnqueueWriteImage(queue, image.handle.get(), CL_TRUE, origin, layout.extent.v,
                               row_bytes, slice_pitch, other.bytes, 0, nullptr,
                               nullptr) != CL_SUCCESS ||
      std::memcmp(page->bytes, other.bytes, layout.bytes) != 0) {
    return false;
  }
  for (size_t i = 0; i < layout.bytes; ++i) page->bytes[i] = static_cast<cl_uchar>(7 * i + 3);
  return cl().clEnqueueReadImage(queue, image.handle.get(), CL_TRUE, origin, layout.extent.v,
                                 row_bytes, slice_pitch, other.bytes, 0, nullptr,
                                 nullptr) == CL_SUCCESS &&
         std::memcmp(page->bytes, other.bytes, layout.bytes) == 0;
}

bool TryImages(ContextObject* context, cl_mem_object_type type) {
  const cl_image_format format = {CL_RGBA, CL_UNORM_INT8};  // Every device with images has it.
  const cl_image_desc desc = SmallImage(type);
  wire::ImageLayout layout;
  if (!wire::LayOutImage(desc, wire::ElementBytes(format), 0, &layout) || layout.bytes > kBytes)
    return false;
  Page page;
  cl_int status = CL_SUCCESS;
  MemoryObject image;
  image.image_type = type;
  // Not an owner, for this one object.
  image.context = std::shared_ptr<ContextObject>(std::shared_ptr<void>(), context);
  image.handle.reset(cl().clCreateImage(context->handle.get(), CL_MEM_USE_HOST_PTR, &format, &desc,
                                        page.bytes, &status));
  return status == CL_SUCCESS && KeepsElementsInPlace(image, layout, &page) &&
         MapsTo(image, layout, page.bytes);
}

void CL_CALLBACK OnTrialDestroyed(cl_mem, void*) {}

}  // namespace

bool BuffersWorkInHostMemory(const ContextObject& context) {
  const ScopedOwnQuestions own_questions;
  constexpr cl_uchar kFromDevice = 0xA5;
  constexpr cl_uchar kFromHost = 0x5A;
  Page page;
  cl_uchar* const memory = page.bytes;
  const cl_command_queue queue = context.own_queue.get();
  cl_int status = CL_SUCCESS;
  const UniqueCl<cl_mem> buffer(
      cl().clCreateBuffer(context.handle.get(), CL_MEM_USE_HOST_PTR, kBytes, memory, &status));
  // The heap has the memory back when the driver says that it has done with it. Of one that does
  // not say so (Wine's), buffers cannot lie there.
  if (status != CL_SUCCESS || cl().clSetMemObjectDestructorCallback(buffer.get(), &OnTrialDestroyed,
                                                                    nullptr) != CL_SUCCESS) {
    return false;
  }
  if (cl().clEnqueueFillBuffer(queue, buffer.get(), &kFromDevice, 1, 0, kBytes, 0, nullptr,
                               nullptr) != CL_SUCCESS ||
      cl().clFinish(queue) != CL_SUCCESS || memory[0] != kFromDevice ||
      memory[kBytes - 1] != kFromDevice) {
    return false;
  }
  memory[1] = kFromHost;
  cl_uchar seen = 0;
  return cl().clEnqueueReadBuffer(queue, buffer.get(), CL_TRUE, 1, 1, &seen, 0, nullptr, nullptr) ==
             CL_SUCCESS &&
         seen == kFromHost;
}

bool ImagesWorkInHostMemory(ContextObject* context, cl_mem_object_type type) {
  if (!context->buffers_in_heap) return false;
  const auto [tried, is_new] = context->images_in_heap.try_emplace(type, false);
  if (is_new) tried->second = TryImages(context, type);
  return tried->second;
}

bool MapsTo(const MemoryObject& image, const wire::ImageLayout& layout, const uint8_t* memory) {
  const cl_command_queue queue = image.context->own_queue.get();
  const size_t* const extent = layout.extent.v;
  const size_t last[3] = {extent[0] - 1, extent[1] - 1, extent[2] - 1};
  const size_t one[3] = {1, 1, 1};
  size_t row_pitch = 0;
  size_t slice_pitch = 0;
  cl_int status = CL_SUCCESS;
  void* const there =
      cl().clEnqueueMapImage(queue, image.handle.get(), CL_TRUE, CL_MAP_READ, last, one, &row_pitch,
                             &slice_pitch, 0, nullptr, nullptr, &status);
  if (status != CL_SUCCESS) return false;
  cl().clEnqueueUnmapMemObject(queue, image.handle.get(), there, 0, nullptr, nullptr);
  return cl().clFinish(queue) == CL_SUCCESS && there == memory + layout.OffsetOf(last);
}

}  // namespace sluice::worker
