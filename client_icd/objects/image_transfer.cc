// SPDX-License-Identifier: Apache-2.0
// Commands that move the elements of images: read, write, copy, fill, and copies between images and
// buffers.
#include "client_icd/objects/image_transfer.h"

#include <algorithm>

#include "client_icd/base/api.h"
#include "client_icd/objects/enqueue.h"
#include "proto/codec.h"

namespace sluice::client {
namespace {

bool IsLayeredRow(const ImageShape& image) {
  return image.desc.image_type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
}

// Queue and image of a command, checked together (section 5.3.3). `writes`: to the image.
struct Target {
  Queue* queue = nullptr;
  MemObject* image = nullptr;
};

cl_int FindTarget(cl_command_queue queue_handle, cl_mem image_handle, bool writes, Target* out) {
  out->queue = Queue::FromHost(queue_handle);
  if (out->queue == nullptr) return CL_INVALID_COMMAND_QUEUE;
  out->image = MemObject::FromImage(image_handle);
  if (out->image == nullptr) return CL_INVALID_MEM_OBJECT;
  // CL_INVALID_CONTEXT if the context associated with command_queue and image are not the same.
  if (&out->queue->context() != &out->image->context()) return CL_INVALID_CONTEXT;
  // CL_INVALID_OPERATION if the device associated with command_queue does not support images.
  if (!out->queue->device().image_support()) return CL_INVALID_OPERATION;
  CL_RETURN_IF_ERROR(out->image->CheckCommands());
  return out->image->Use(writes);
}

// The buffer of a copy between image and buffer.
cl_int FindBuffer(const Target& target, cl_mem handle, bool writes, MemObject** out) {
  *out = MemObject::FromBuffer(handle);
  if (*out == nullptr) return CL_INVALID_MEM_OBJECT;
  if (&target.queue->context() != &(*out)->context()) return CL_INVALID_CONTEXT;
  CL_RETURN_IF_ERROR((*out)->CheckAlignment(target.queue->device()));
  return (*out)->Use(writes);
}

// CL_INVALID_VALUE if the bytes of the region, tightly packed, do not fit the buffer from `offset`
// on (section 5.3.5).
cl_int CheckBufferRange(const MemObject& buffer, size_t offset, const ImageShape& image,
                        const size_t* region) {
  uint64_t bytes = image.element_bytes;
  for (int i = 0; i < 3; ++i) {
    if (!CheckedMultiply(bytes, region[i], &bytes)) return CL_INVALID_VALUE;
  }
  return offset <= buffer.bytes() && bytes <= buffer.bytes() - offset ? CL_SUCCESS
                                                                      : CL_INVALID_VALUE;
}

Mapping MapOf(cl_map_flags flags, const size_t* origin, const size_t* region) {
  Mapping mapping;
  mapping.flags = flags;
  std::copy_n(origin, 3, mapping.image_origin);
  std::copy_n(region, 3, mapping.image_region);
  return mapping;
}

bool RegionsOverlap(const size_t* a, const size_t* b, const size_t* region) {
  for (int i = 0; i < 3; ++i) {
    if (a[i] >= b[i] + region[i] || b[i] >= a[i] + region[i]) return false;
  }
  return true;
}

}  // namespace

cl_int CheckImageRegion(const ImageShape& image, const size_t* origin, const size_t* region) {
  if (origin == nullptr || region == nullptr) return CL_INVALID_VALUE;
  for (int i = 0; i < 3; ++i) {
    // Dimensions that the type has not are 1 in the extent, which leaves origin 0 and region 1.
    const size_t extent = image.extent.v[i];
    if (region[i] == 0 || origin[i] > extent || region[i] > extent - origin[i])
      return CL_INVALID_VALUE;
  }
  return CL_SUCCESS;
}

cl_int CompletePitches(const ImageShape& image, const size_t* region, size_t* row_pitch,
                       size_t* slice_pitch) {
  // Section 5.3.3: row_pitch must be greater than or equal to the element size in bytes x width; 0
  // stands for that.
  const size_t row_bytes = region[0] * image.element_bytes;
  if (*row_pitch == 0) *row_pitch = row_bytes;
  if (*row_pitch < row_bytes) return CL_INVALID_VALUE;
  // slice_pitch must be 0 if image is a 1D or 2D image, else greater than or equal to row_pitch x
  // height.
  const cl_mem_object_type type = image.desc.image_type;
  const bool has_slices = image.dimensions() == 3 || IsLayeredRow(image);
  if (!has_slices) {
    if (*slice_pitch != 0 && type != CL_MEM_OBJECT_IMAGE1D_BUFFER) return CL_INVALID_VALUE;
    *slice_pitch = 0;
    return CL_SUCCESS;
  }
  uint64_t plane = 0;
  if (!CheckedMultiply(*row_pitch, IsLayeredRow(image) ? 1 : region[1], &plane))
    return CL_INVALID_VALUE;
  if (*slice_pitch == 0) *slice_pitch = plane;
  return *slice_pitch >= plane ? CL_SUCCESS : CL_INVALID_VALUE;
}

HostRegion ImageHostRegion(const ImageShape& image, void* first, const size_t* region,
                           size_t row_pitch, size_t slice_pitch) {
  const size_t row_bytes = region[0] * image.element_bytes;
  if (IsLayeredRow(image))
    return HostRegion(first, row_bytes, region[1], 1, slice_pitch, slice_pitch * region[1]);
  return HostRegion(first, row_bytes, region[1], region[2], row_pitch, slice_pitch);
}

size_t ImageOffset(const ImageShape& image, const size_t* origin) {
  const size_t column = origin[0] * image.element_bytes;
  if (IsLayeredRow(image)) return column + origin[1] * image.slice_pitch;
  return column + origin[1] * image.row_pitch + origin[2] * image.slice_pitch;
}

size_t ImageBytes(const ImageShape& image) {
  if (image.slice_pitch == 0) return image.row_pitch * image.extent.v[1];
  return image.slice_pitch * (IsLayeredRow(image) ? image.extent.v[1] : image.extent.v[2]);
}

namespace api {

cl_int CL_API_CALL clEnqueueReadImage(cl_command_queue command_queue, cl_mem image,
                                      cl_bool blocking_read, const size_t* origin,
                                      const size_t* region, size_t row_pitch, size_t slice_pitch,
                                      void* ptr, cl_uint num_events_in_wait_list,
                                      const cl_event* event_wait_list, cl_event* event) noexcept {
  Target target;
  CL_RETURN_IF_ERROR(FindTarget(command_queue, image, /*writes=*/false, &target));
  const ImageShape& shape = target.image->image();
  CL_RETURN_IF_ERROR(CheckImageRegion(shape, origin, region));
  if (ptr == nullptr) return CL_INVALID_VALUE;
  CL_RETURN_IF_ERROR(CompletePitches(shape, region, &row_pitch, &slice_pitch));
  CL_RETURN_IF_ERROR(target.image->CheckHostRead());
  EnqueueCall call(target.queue, num_events_in_wait_list, event_wait_list, event,
                   CL_COMMAND_READ_IMAGE);
  CL_RETURN_IF_ERROR(call.status());
  const HostRegion destination = ImageHostRegion(shape, ptr, region, row_pitch, slice_pitch);
  if (GoesThroughHeap(*target.queue, *target.image, blocking_read != CL_FALSE,
                      destination.packed_bytes())) {
    return CopyThroughHeap(&call, target.image, MapOf(CL_MAP_READ, origin, region), [&] {
      destination.CopyFrom(ImageRegionInHeap(*target.image, origin, region));
    });
  }
  pb::EnqueueReadImage& body = *call.command().mutable_enqueue_read_image();
  body.set_mem_id(target.image->id());
  wire::EncodeSize3(origin, body.mutable_origin());
  wire::EncodeSize3(region, body.mutable_region());
  return call.SubmitRead(body.mutable_on(), destination, blocking_read != CL_FALSE);
}

cl_int CL_API_CALL clEnqueueWriteImage(cl_command_queue command_queue, cl_mem image,
                                       cl_bool blocking_write, const size_t* origin,
                                       const size_t* region, size_t input_row_pitch,
                                       size_t input_slice_pitch, const void* ptr,
                                       cl_uint num_events_in_wait_list,
                                       const cl_event* event_wait_list, cl_event* event) noexcept {
  Target target;
  CL_RETURN_IF_ERROR(FindTarget(command_queue, image, /*writes=*/true, &target));
  const ImageShape& shape = target.image->image();
  CL_RETURN_IF_ERROR(CheckImageRegion(shape, origin, region));
  if (ptr == nullptr) return CL_INVALID_VALUE;
  CL_RETURN_IF_ERROR(CompletePitches(shape, region, &input_row_pitch, &input_slice_pitch));
  CL_RETURN_IF_ERROR(target.image->CheckHostWrite());
  EnqueueCall call(target.queue, num_events_in_wait_list, event_wait_list, event,
                   CL_COMMAND_WRITE_IMAGE);
  CL_RETURN_IF_ERROR(call.status());
  const HostRegion source =
      ImageHostRegion(shape, const_cast<void*>(ptr), region, input_row_pitch, input_slice_pitch);
  if (GoesThroughHeap(*target.queue, *target.image, blocking_write != CL_FALSE,
                      source.packed_bytes())) {
    return CopyThroughHeap(
        &call, target.image, MapOf(CL_MAP_WRITE_INVALIDATE_REGION, origin, region),
        [&] { ImageRegionInHeap(*target.image, origin, region).CopyFrom(source); });
  }
  pb::EnqueueWriteImage& body = *call.command().mutable_enqueue_write_image();
  body.set_mem_id(target.image->id());
  wire::EncodeSize3(origin, body.mutable_origin());
  wire::EncodeSize3(region, body.mutable_region());
  return call.SubmitWrite(body.mutable_on(), source, blocking_write != CL_FALSE);
}

cl_int CL_API_CALL clEnqueueCopyImage(cl_command_queue command_queue, cl_mem src_image,
                                      cl_mem dst_image, const size_t* src_origin,
                                      const size_t* dst_origin, const size_t* region,
                                      cl_uint num_events_in_wait_list,
                                      const cl_event* event_wait_list, cl_event* event) noexcept {
  Target source;
  Target destination;
  CL_RETURN_IF_ERROR(FindTarget(command_queue, src_image, /*writes=*/false, &source));
  CL_RETURN_IF_ERROR(FindTarget(command_queue, dst_image, /*writes=*/true, &destination));
  const ImageShape& from = source.image->image();
  const ImageShape& to = destination.image->image();
  // Section 5.3.4: CL_IMAGE_FORMAT_MISMATCH if src_image and dst_image do not use the same image
  // format.
  if (from.format.image_channel_order != to.format.image_channel_order ||
      from.format.image_channel_data_type != to.format.image_channel_data_type) {
    return CL_IMAGE_FORMAT_MISMATCH;
  }
  CL_RETURN_IF_ERROR(CheckImageRegion(from, src_origin, region));
  CL_RETURN_IF_ERROR(CheckImageRegion(to, dst_origin, region));
  // CL_MEM_COPY_OVERLAP if src_image and dst_image are the same image object and the regions
  // overlap.
  if (source.image == destination.image && RegionsOverlap(src_origin, dst_origin, region))
    return CL_MEM_COPY_OVERLAP;
  EnqueueCall call(source.queue, num_events_in_wait_list, event_wait_list, event,
                   CL_COMMAND_COPY_IMAGE);
  CL_RETURN_IF_ERROR(call.status());
  pb::EnqueueCopyImage& body = *call.command().mutable_enqueue_copy_image();
  body.set_source_id(source.image->id());
  body.set_destination_id(destination.image->id());
  wire::EncodeSize3(src_origin, body.mutable_source_origin());
  wire::EncodeSize3(dst_origin, body.mutable_destination_origin());
  wire::EncodeSize3(region, body.mutable_region());
  return call.Submit(body.mutable_on());
}

cl_int CL_API_CALL clEnqueueCopyImageToBuffer(cl_command_queue command_queue, cl_mem src_image,
                                              cl_mem dst_buffer, const size_t* src_origin,
                                              const size_t* region, size_t dst_offset,
                                              cl_uint num_events_in_wait_list,
                                              const cl_event* event_wait_list,
                                              cl_event* event) noexcept {
  Target source;
  MemObject* buffer = nullptr;
  CL_RETURN_IF_ERROR(FindTarget(command_queue, src_image, /*writes=*/false, &source));
  CL_RETURN_IF_ERROR(FindBuffer(source, dst_buffer, /*writes=*/true, &buffer));
  const ImageShape& shape = source.image->image();
  // Section 5.3.5: CL_INVALID_MEM_OBJECT if src_image is a 1D image buffer object created from
  // dst_buffer.
  if (shape.desc.image_type == CL_MEM_OBJECT_IMAGE1D_BUFFER && source.image->parent() == buffer) {
    return CL_INVALID_MEM_OBJECT;
  }
  CL_RETURN_IF_ERROR(CheckImageRegion(shape, src_origin, region));
  CL_RETURN_IF_ERROR(CheckBufferRange(*buffer, dst_offset, shape, region));
  EnqueueCall call(source.queue, num_events_in_wait_list, event_wait_list, event,
                   CL_COMMAND_COPY_IMAGE_TO_BUFFER);
  CL_RETURN_IF_ERROR(call.status());
  pb::EnqueueCopyImageToBuffer& body = *call.command().mutable_enqueue_copy_image_to_buffer();
  body.set_image_id(source.image->id());
  body.set_buffer_id(buffer->id());
  wire::EncodeSize3(src_origin, body.mutable_origin());
  wire::EncodeSize3(region, body.mutable_region());
  body.set_buffer_offset(dst_offset);
  return call.Submit(body.mutable_on());
}

cl_int CL_API_CALL clEnqueueCopyBufferToImage(cl_command_queue command_queue, cl_mem src_buffer,
                                              cl_mem dst_image, size_t src_offset,
                                              const size_t* dst_origin, const size_t* region,
                                              cl_uint num_events_in_wait_list,
                                              const cl_event* event_wait_list,
                                              cl_event* event) noexcept {
  Target destination;
  MemObject* buffer = nullptr;
  CL_RETURN_IF_ERROR(FindTarget(command_queue, dst_image, /*writes=*/true, &destination));
  CL_RETURN_IF_ERROR(FindBuffer(destination, src_buffer, /*writes=*/false, &buffer));
  const ImageShape& shape = destination.image->image();
  // Section 5.3.5: CL_INVALID_MEM_OBJECT if dst_image is a 1D image buffer object created from
  // src_buffer.
  if (shape.desc.image_type == CL_MEM_OBJECT_IMAGE1D_BUFFER &&
      destination.image->parent() == buffer) {
    return CL_INVALID_MEM_OBJECT;
  }
  CL_RETURN_IF_ERROR(CheckImageRegion(shape, dst_origin, region));
  CL_RETURN_IF_ERROR(CheckBufferRange(*buffer, src_offset, shape, region));
  EnqueueCall call(destination.queue, num_events_in_wait_list, event_wait_list, event,
                   CL_COMMAND_COPY_BUFFER_TO_IMAGE);
  CL_RETURN_IF_ERROR(call.status());
  pb::EnqueueCopyBufferToImage& body = *call.command().mutable_enqueue_copy_buffer_to_image();
  body.set_buffer_id(buffer->id());
  body.set_image_id(destination.image->id());
  body.set_buffer_offset(src_offset);
  wire::EncodeSize3(dst_origin, body.mutable_origin());
  wire::EncodeSize3(region, body.mutable_region());
  return call.Submit(body.mutable_on());
}

cl_int CL_API_CALL clEnqueueFillImage(cl_command_queue command_queue, cl_mem image,
                                      const void* fill_color, const size_t* origin,
                                      const size_t* region, cl_uint num_events_in_wait_list,
                                      const cl_event* event_wait_list, cl_event* event) noexcept {
  Target target;
  CL_RETURN_IF_ERROR(FindTarget(command_queue, image, /*writes=*/true, &target));
  // Section 5.3.3: CL_INVALID_VALUE if fill_color is NULL.
  if (fill_color == nullptr) return CL_INVALID_VALUE;
  const ImageShape& shape = target.image->image();
  CL_RETURN_IF_ERROR(CheckImageRegion(shape, origin, region));
  EnqueueCall call(target.queue, num_events_in_wait_list, event_wait_list, event,
                   CL_COMMAND_FILL_IMAGE);
  CL_RETURN_IF_ERROR(call.status());
  pb::EnqueueFillImage& body = *call.command().mutable_enqueue_fill_image();
  body.set_mem_id(target.image->id());
  // The fill color is a four-component value of 16 bytes, or a single float for a depth image.
  const bool is_depth = shape.format.image_channel_order == CL_DEPTH;
  body.set_color(fill_color, is_depth ? sizeof(cl_float) : sizeof(cl_float4));
  wire::EncodeSize3(origin, body.mutable_origin());
  wire::EncodeSize3(region, body.mutable_region());
  return call.Submit(body.mutable_on());
}

}  // namespace api
}  // namespace sluice::client
