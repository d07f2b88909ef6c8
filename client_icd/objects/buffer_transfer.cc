// SPDX-License-Identifier: Apache-2.0
// Commands that move the bytes of buffers: read, write, copy, fill, the rectangles of the first
// three, and migration.
#include <cstring>

#include "client_icd/base/api.h"
#include "client_icd/base/buffer_rect.h"
#include "client_icd/base/copy_helpers.h"
#include "client_icd/objects/enqueue.h"
#include "client_icd/objects/memory.h"

namespace sluice::client {
namespace {

// Queue and buffer of a transfer, checked together (section 5.2.2). `writes`: to the buffer.
struct Target {
  Queue* queue = nullptr;
  MemObject* buffer = nullptr;
};

cl_int FindTarget(cl_command_queue queue_handle, cl_mem buffer_handle, bool writes, Target* out) {
  out->queue = Queue::FromHost(queue_handle);
  if (out->queue == nullptr) return CL_INVALID_COMMAND_QUEUE;
  out->buffer = MemObject::FromBuffer(buffer_handle);
  if (out->buffer == nullptr) return CL_INVALID_MEM_OBJECT;
  // CL_INVALID_CONTEXT if the context associated with command_queue and buffer are not the same.
  if (&out->queue->context() != &out->buffer->context()) return CL_INVALID_CONTEXT;
  // CL_MISALIGNED_SUB_BUFFER_OFFSET if buffer is a sub-buffer whose offset is not aligned for the
  // queue's device.
  CL_RETURN_IF_ERROR(out->buffer->CheckAlignment(out->queue->device()));
  return out->buffer->Use(writes);
}

// CL_INVALID_VALUE if the region specified by (offset, size) is out of bounds.
cl_int CheckRange(const MemObject& buffer, size_t offset, size_t size) {
  return offset <= buffer.bytes() && size <= buffer.bytes() - offset ? CL_SUCCESS
                                                                     : CL_INVALID_VALUE;
}

Mapping MapOf(cl_map_flags flags, size_t offset, size_t size) {
  Mapping mapping;
  mapping.flags = flags;
  mapping.offset = offset;
  mapping.bytes = size;
  return mapping;
}

void CopyInParts(void* to, const void* from, size_t size) {
  CopyHelpers::Get().Run(size, [=](uint64_t offset, uint64_t bytes) {
    std::memcpy(static_cast<uint8_t*>(to) + offset, static_cast<const uint8_t*>(from) + offset,
                bytes);
  });
}

cl_int CheckRect(const Target& target, const size_t* buffer_origin, const size_t* host_origin,
                 const size_t* region, PitchedRect* buffer, PitchedRect* host, const void* ptr) {
  // Section 5.2.2: CL_INVALID_VALUE if buffer_origin, host_origin, or region is NULL, or ptr is
  // NULL.
  if (buffer_origin == nullptr || host_origin == nullptr || region == nullptr || ptr == nullptr) {
    return CL_INVALID_VALUE;
  }
  if (!CompleteRect(buffer_origin, region, buffer) || !CompleteRect(host_origin, region, host))
    return CL_INVALID_VALUE;
  // CL_INVALID_VALUE if the region being read or written is out of bounds.
  return buffer->end <= target.buffer->bytes() ? CL_SUCCESS : CL_INVALID_VALUE;
}

HostRegion HostSide(void* ptr, const PitchedRect& host, const size_t* region) {
  return HostRegion(static_cast<uint8_t*>(ptr) + host.begin, region[0], region[1], region[2],
                    host.row_pitch, host.slice_pitch);
}

}  // namespace

namespace api {

cl_int CL_API_CALL clEnqueueReadBuffer(cl_command_queue command_queue, cl_mem buffer,
                                       cl_bool blocking_read, size_t offset, size_t size, void* ptr,
                                       cl_uint num_events_in_wait_list,
                                       const cl_event* event_wait_list, cl_event* event) noexcept {
  Target target;
  CL_RETURN_IF_ERROR(FindTarget(command_queue, buffer, /*writes=*/false, &target));
  CL_RETURN_IF_ERROR(CheckRange(*target.buffer, offset, size));
  if (ptr == nullptr) return CL_INVALID_VALUE;
  CL_RETURN_IF_ERROR(target.buffer->CheckHostRead());
  EnqueueCall call(target.queue, num_events_in_wait_list, event_wait_list, event,
                   CL_COMMAND_READ_BUFFER);
  CL_RETURN_IF_ERROR(call.status());
  const bool blocking = blocking_read != CL_FALSE;
  if (size == 0) return call.SubmitNothing(blocking);
  if (GoesThroughHeap(*target.queue, *target.buffer, blocking, size)) {
    return CopyThroughHeap(&call, target.buffer, MapOf(CL_MAP_READ, offset, size),
                           [&] { CopyInParts(ptr, target.buffer->heap() + offset, size); });
  }
  pb::EnqueueReadBuffer& body = *call.command().mutable_enqueue_read_buffer();
  body.set_mem_id(target.buffer->id());
  body.set_offset(offset);
  body.set_size(size);
  return call.SubmitRead(body.mutable_on(), HostRegion(ptr, size), blocking);
}

cl_int CL_API_CALL clEnqueueWriteBuffer(cl_command_queue command_queue, cl_mem buffer,
                                        cl_bool blocking_write, size_t offset, size_t size,
                                        const void* ptr, cl_uint num_events_in_wait_list,
                                        const cl_event* event_wait_list, cl_event* event) noexcept {
  Target target;
  CL_RETURN_IF_ERROR(FindTarget(command_queue, buffer, /*writes=*/true, &target));
  CL_RETURN_IF_ERROR(CheckRange(*target.buffer, offset, size));
  if (ptr == nullptr) return CL_INVALID_VALUE;
  CL_RETURN_IF_ERROR(target.buffer->CheckHostWrite());
  EnqueueCall call(target.queue, num_events_in_wait_list, event_wait_list, event,
                   CL_COMMAND_WRITE_BUFFER);
  CL_RETURN_IF_ERROR(call.status());
  const bool blocking = blocking_write != CL_FALSE;
  if (size == 0) return call.SubmitNothing(blocking);
  if (GoesThroughHeap(*target.queue, *target.buffer, blocking, size)) {
    return CopyThroughHeap(&call, target.buffer,
                           MapOf(CL_MAP_WRITE_INVALIDATE_REGION, offset, size),
                           [&] { CopyInParts(target.buffer->heap() + offset, ptr, size); });
  }
  pb::EnqueueWriteBuffer& body = *call.command().mutable_enqueue_write_buffer();
  body.set_mem_id(target.buffer->id());
  body.set_offset(offset);
  body.set_size(size);
  return call.SubmitWrite(body.mutable_on(), HostRegion::Source(ptr, size), blocking);
}

cl_int CL_API_CALL clEnqueueReadBufferRect(cl_command_queue command_queue, cl_mem buffer,
                                           cl_bool blocking_read, const size_t* buffer_origin,
                                           const size_t* host_origin, const size_t* region,
                                           size_t buffer_row_pitch, size_t buffer_slice_pitch,
                                           size_t host_row_pitch, size_t host_slice_pitch,
                                           void* ptr, cl_uint num_events_in_wait_list,
                                           const cl_event* event_wait_list,
                                           cl_event* event) noexcept {
  Target target;
  CL_RETURN_IF_ERROR(FindTarget(command_queue, buffer, /*writes=*/false, &target));
  PitchedRect source{buffer_row_pitch, buffer_slice_pitch};
  PitchedRect host{host_row_pitch, host_slice_pitch};
  CL_RETURN_IF_ERROR(CheckRect(target, buffer_origin, host_origin, region, &source, &host, ptr));
  CL_RETURN_IF_ERROR(target.buffer->CheckHostRead());
  EnqueueCall call(target.queue, num_events_in_wait_list, event_wait_list, event,
                   CL_COMMAND_READ_BUFFER_RECT);
  CL_RETURN_IF_ERROR(call.status());
  pb::EnqueueReadBuffer& body = *call.command().mutable_enqueue_read_buffer();
  body.set_mem_id(target.buffer->id());
  EncodeRect(buffer_origin, region, source, body.mutable_rect());
  return call.SubmitRead(body.mutable_on(), HostSide(ptr, host, region), blocking_read != CL_FALSE);
}

cl_int CL_API_CALL clEnqueueWriteBufferRect(cl_command_queue command_queue, cl_mem buffer,
                                            cl_bool blocking_write, const size_t* buffer_origin,
                                            const size_t* host_origin, const size_t* region,
                                            size_t buffer_row_pitch, size_t buffer_slice_pitch,
                                            size_t host_row_pitch, size_t host_slice_pitch,
                                            const void* ptr, cl_uint num_events_in_wait_list,
                                            const cl_event* event_wait_list,
                                            cl_event* event) noexcept {
  Target target;
  CL_RETURN_IF_ERROR(FindTarget(command_queue, buffer, /*writes=*/true, &target));
  PitchedRect destination{buffer_row_pitch, buffer_slice_pitch};
  PitchedRect host{host_row_pitch, host_slice_pitch};
  CL_RETURN_IF_ERROR(
      CheckRect(target, buffer_origin, host_origin, region, &destination, &host, ptr));
  CL_RETURN_IF_ERROR(target.buffer->CheckHostWrite());
  EnqueueCall call(target.queue, num_events_in_wait_list, event_wait_list, event,
                   CL_COMMAND_WRITE_BUFFER_RECT);
  CL_RETURN_IF_ERROR(call.status());
  pb::EnqueueWriteBuffer& body = *call.command().mutable_enqueue_write_buffer();
  body.set_mem_id(target.buffer->id());
  EncodeRect(buffer_origin, region, destination, body.mutable_rect());
  return call.SubmitWrite(body.mutable_on(), HostSide(const_cast<void*>(ptr), host, region),
                          blocking_write != CL_FALSE);
}

cl_int CL_API_CALL clEnqueueCopyBuffer(cl_command_queue command_queue, cl_mem src_buffer,
                                       cl_mem dst_buffer, size_t src_offset, size_t dst_offset,
                                       size_t size, cl_uint num_events_in_wait_list,
                                       const cl_event* event_wait_list, cl_event* event) noexcept {
  Target source;
  Target destination;
  CL_RETURN_IF_ERROR(FindTarget(command_queue, src_buffer, /*writes=*/false, &source));
  CL_RETURN_IF_ERROR(FindTarget(command_queue, dst_buffer, /*writes=*/true, &destination));
  CL_RETURN_IF_ERROR(CheckRange(*source.buffer, src_offset, size));
  CL_RETURN_IF_ERROR(CheckRange(*destination.buffer, dst_offset, size));
  // Section 5.2.2: CL_MEM_COPY_OVERLAP if src_buffer and dst_buffer are the same buffer or
  // sub-buffer, or sub-buffers of one buffer, and the source and destination regions overlap.
  if (&source.buffer->root() == &destination.buffer->root()) {
    const size_t from = source.buffer->origin() + src_offset;
    const size_t to = destination.buffer->origin() + dst_offset;
    if (from < to + size && to < from + size) return CL_MEM_COPY_OVERLAP;
  }
  EnqueueCall call(source.queue, num_events_in_wait_list, event_wait_list, event,
                   CL_COMMAND_COPY_BUFFER);
  CL_RETURN_IF_ERROR(call.status());
  if (size == 0) return call.SubmitNothing();
  pb::EnqueueCopyBuffer& body = *call.command().mutable_enqueue_copy_buffer();
  body.set_source_id(source.buffer->id());
  body.set_destination_id(destination.buffer->id());
  body.set_source_offset(src_offset);
  body.set_destination_offset(dst_offset);
  body.set_size(size);
  return call.Submit(body.mutable_on());
}

cl_int CL_API_CALL clEnqueueCopyBufferRect(
    cl_command_queue command_queue, cl_mem src_buffer, cl_mem dst_buffer, const size_t* src_origin,
    const size_t* dst_origin, const size_t* region, size_t src_row_pitch, size_t src_slice_pitch,
    size_t dst_row_pitch, size_t dst_slice_pitch, cl_uint num_events_in_wait_list,
    const cl_event* event_wait_list, cl_event* event) noexcept {
  Target source;
  Target destination;
  CL_RETURN_IF_ERROR(FindTarget(command_queue, src_buffer, /*writes=*/false, &source));
  CL_RETURN_IF_ERROR(FindTarget(command_queue, dst_buffer, /*writes=*/true, &destination));
  // Section 5.2.2: CL_INVALID_VALUE if src_origin, dst_origin, or region is NULL, or a pitch does
  // not suit the region.
  if (src_origin == nullptr || dst_origin == nullptr || region == nullptr) return CL_INVALID_VALUE;
  PitchedRect from{src_row_pitch, src_slice_pitch};
  PitchedRect to{dst_row_pitch, dst_slice_pitch};
  if (!CompleteRect(src_origin, region, &from) || !CompleteRect(dst_origin, region, &to))
    return CL_INVALID_VALUE;
  if (from.end > source.buffer->bytes() || to.end > destination.buffer->bytes())
    return CL_INVALID_VALUE;
  if (&source.buffer->root() == &destination.buffer->root()) {
    // CL_INVALID_VALUE if src_buffer and dst_buffer are the same buffer object and src_slice_pitch
    // is not equal to dst_slice_pitch or src_row_pitch is not equal to dst_row_pitch.
    const bool same_pitches = from.row_pitch == to.row_pitch && from.slice_pitch == to.slice_pitch;
    if (source.buffer == destination.buffer && !same_pitches) return CL_INVALID_VALUE;
    // CL_MEM_COPY_OVERLAP, by the test of appendix D of the specification.
    const size_t from_begin = source.buffer->origin() + from.begin;
    const size_t to_begin = destination.buffer->origin() + to.begin;
    if (RectsOverlap(from, from_begin, to, to_begin, region)) return CL_MEM_COPY_OVERLAP;
  }
  EnqueueCall call(source.queue, num_events_in_wait_list, event_wait_list, event,
                   CL_COMMAND_COPY_BUFFER_RECT);
  CL_RETURN_IF_ERROR(call.status());
  pb::EnqueueCopyBufferRect& body = *call.command().mutable_enqueue_copy_buffer_rect();
  body.set_source_id(source.buffer->id());
  body.set_destination_id(destination.buffer->id());
  EncodeRect(src_origin, region, from, body.mutable_source());
  EncodeRect(dst_origin, region, to, body.mutable_destination());
  return call.Submit(body.mutable_on());
}

cl_int CL_API_CALL clEnqueueFillBuffer(cl_command_queue command_queue, cl_mem buffer,
                                       const void* pattern, size_t pattern_size, size_t offset,
                                       size_t size, cl_uint num_events_in_wait_list,
                                       const cl_event* event_wait_list, cl_event* event) noexcept {
  Target target;
  CL_RETURN_IF_ERROR(FindTarget(command_queue, buffer, /*writes=*/true, &target));
  CL_RETURN_IF_ERROR(CheckRange(*target.buffer, offset, size));
  // Section 5.2.3: CL_INVALID_VALUE if pattern is NULL or if pattern_size is 0 or not one of {1, 2,
  // 4, ..., 128}, or if offset and size are not a multiple of pattern_size.
  if (pattern == nullptr || pattern_size == 0 || pattern_size > 128 ||
      (pattern_size & (pattern_size - 1)) != 0) {
    return CL_INVALID_VALUE;
  }
  if (offset % pattern_size != 0 || size % pattern_size != 0) return CL_INVALID_VALUE;
  EnqueueCall call(target.queue, num_events_in_wait_list, event_wait_list, event,
                   CL_COMMAND_FILL_BUFFER);
  CL_RETURN_IF_ERROR(call.status());
  if (size == 0) return call.SubmitNothing();
  pb::EnqueueFillBuffer& body = *call.command().mutable_enqueue_fill_buffer();
  body.set_mem_id(target.buffer->id());
  body.set_pattern(pattern, pattern_size);
  body.set_offset(offset);
  body.set_size(size);
  return call.Submit(body.mutable_on());
}

cl_int CL_API_CALL clEnqueueMigrateMemObjects(cl_command_queue command_queue,
                                              cl_uint num_mem_objects, const cl_mem* mem_objects,
                                              cl_mem_migration_flags flags,
                                              cl_uint num_events_in_wait_list,
                                              const cl_event* event_wait_list,
                                              cl_event* event) noexcept {
  Queue* queue = Queue::FromHost(command_queue);
  if (queue == nullptr) return CL_INVALID_COMMAND_QUEUE;
  // Section 5.5.4: CL_INVALID_VALUE if num_mem_objects is zero or mem_objects is NULL, or if flags
  // is not 0 or any of the values described in its table.
  if (num_mem_objects == 0 || mem_objects == nullptr) return CL_INVALID_VALUE;
  const cl_mem_migration_flags known =
      CL_MIGRATE_MEM_OBJECT_HOST | CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED;
  if ((flags & ~known) != 0) return CL_INVALID_VALUE;
  EnqueueCall call(queue, num_events_in_wait_list, event_wait_list, event,
                   CL_COMMAND_MIGRATE_MEM_OBJECTS);
  CL_RETURN_IF_ERROR(call.status());
  pb::EnqueueMigrateMemObjects& body = *call.command().mutable_enqueue_migrate_mem_objects();
  for (cl_uint i = 0; i < num_mem_objects; ++i) {
    const MemObject* memory = MemObject::From(mem_objects[i]);
    // CL_INVALID_MEM_OBJECT if any of the memory objects is not valid.
    if (memory == nullptr) return CL_INVALID_MEM_OBJECT;
    if (&memory->context() != &queue->context()) return CL_INVALID_CONTEXT;
    CL_RETURN_IF_ERROR(memory->Use((flags & CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED) != 0));
    body.add_mem_ids(memory->id());
  }
  body.set_flags(flags);
  return call.Submit(body.mutable_on());
}

}  // namespace api
}  // namespace sluice::client
