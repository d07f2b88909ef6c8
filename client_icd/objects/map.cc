// SPDX-License-Identifier: Apache-2.0
#include "client_icd/objects/map.h"

#include "client_icd/base/api.h"
#include "client_icd/objects/enqueue.h"
#include "client_icd/objects/image_transfer.h"
#include "client_icd/objects/memory.h"
#include "proto/codec.h"

namespace sluice::client {

std::shared_ptr<Shadow> Mappings::GetShadow(ShadowPool* pool, size_t bytes) {
  absl::MutexLock lock(&mu_);
  std::shared_ptr<Shadow> shadow = shadow_.lock();
  if (shadow == nullptr) {
    shadow = pool->Get(bytes);
    shadow_ = shadow;
  }
  return shadow;
}

void Mappings::Add(Mapping mapping) {
  absl::MutexLock lock(&mu_);
  mappings_.push_back(std::move(mapping));
}

bool Mappings::Take(const void* pointer, Mapping* mapping) {
  absl::MutexLock lock(&mu_);
  for (size_t i = mappings_.size(); i-- > 0;) {
    if (mappings_[i].pointer != pointer) continue;
    *mapping = std::move(mappings_[i]);
    mappings_.erase(mappings_.begin() + static_cast<std::ptrdiff_t>(i));
    return true;
  }
  return false;
}

void Mappings::Remove(uint64_t map_id) {
  Mapping removed;  // Let go of without the lock.
  absl::MutexLock lock(&mu_);
  for (size_t i = 0; i < mappings_.size(); ++i) {
    if (mappings_[i].map_id != map_id) continue;
    removed = std::move(mappings_[i]);
    mappings_.erase(mappings_.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
}

void Mappings::Release() {
  std::vector<Ref<Object>> kept;  // Let go of without the lock.
  absl::MutexLock lock(&mu_);
  for (Mapping& mapping : mappings_) kept.push_back(std::move(mapping.kept));
}

void Mappings::SetEnded(uint64_t map_id, cl_int status) {
  Ref<Event> pending;  // Let go of without the lock.
  absl::MutexLock lock(&mu_);
  for (Mapping& mapping : mappings_) {
    if (mapping.map_id != map_id) continue;
    mapping.failed = status < 0;
    pending = std::move(mapping.pending);
  }
}

cl_uint Mappings::count() const {
  absl::MutexLock lock(&mu_);
  return static_cast<cl_uint>(mappings_.size());
}

namespace {

cl_int CheckMapFlags(const MemObject& memory, cl_map_flags flags) {
  // Sections 5.2.4 and 5.3.6: CL_INVALID_VALUE if values specified in map_flags are not valid.
  // INVALIDATE_REGION excludes the other two.
  constexpr cl_map_flags kReadWrite = CL_MAP_READ | CL_MAP_WRITE;
  if ((flags & ~(kReadWrite | CL_MAP_WRITE_INVALIDATE_REGION)) != 0) return CL_INVALID_VALUE;
  if ((flags & CL_MAP_WRITE_INVALIDATE_REGION) != 0 && (flags & kReadWrite) != 0)
    return CL_INVALID_VALUE;
  // CL_INVALID_OPERATION if the object was made with CL_MEM_HOST_* flags that forbid what map_flags
  // ask for.
  if ((flags & CL_MAP_READ) != 0) CL_RETURN_IF_ERROR(memory.CheckHostRead());
  if ((flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION)) != 0)
    CL_RETURN_IF_ERROR(memory.CheckHostWrite());
  return CL_SUCCESS;
}

cl_int CheckMap(const Queue* queue, const MemObject* memory, cl_map_flags flags) {
  if (queue == nullptr) return CL_INVALID_COMMAND_QUEUE;
  if (memory == nullptr) return CL_INVALID_MEM_OBJECT;
  if (&queue->context() != &memory->context()) return CL_INVALID_CONTEXT;
  CL_RETURN_IF_ERROR(CheckMapFlags(*memory, flags));
  CL_RETURN_IF_ERROR(memory->CheckCommands());
  return memory->Use((flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION)) != 0);
}

// The memory of a mapping that is not in the heap, from the object's first byte on; null if there
// is not enough.
uint8_t* HostMemory(MemObject* memory, Mapping* mapping) {
  if (memory->host_ptr() != nullptr) return memory->host_ptr();
  MemObject& root = memory->root();
  if (root.mirror() != nullptr) return root.mirror() + memory->origin();
  size_t bytes = root.bytes();
  if (root.is_image()) bytes = ImageBytes(root.image());
  mapping->shadow = root.mappings().GetShadow(&root.session().shadow_pool(), bytes);
  if (mapping->shadow == nullptr) return nullptr;
  return mapping->shadow->data() + (memory->is_buffer() ? memory->origin() : 0);
}

bool NeedsContents(cl_map_flags flags) { return (flags & CL_MAP_WRITE_INVALIDATE_REGION) == 0; }

cl_int SubmitUnmapShared(EnqueueCall* call, const MemObject& memory, const Mapping& mapping) {
  pb::EnqueueUnmapShared& body = *call->command().mutable_enqueue_unmap_shared();
  body.set_mem_id(memory.id());
  body.set_map_id(mapping.map_id);
  return call->Submit(body.mutable_on());
}

// Of a mapping that the worker has made and the application does not get, or has done with.
cl_int UnmapShared(Queue* queue, const MemObject& memory, const Mapping& mapping) {
  EnqueueCall unmap(queue, CL_COMMAND_UNMAP_MEM_OBJECT);
  CL_RETURN_IF_ERROR(unmap.status());
  return SubmitUnmapShared(&unmap, memory, mapping);
}

// Enters the mapping before its command is posted, and takes it out again if the call fails.
template <typename Submit>
cl_int SubmitMap(EnqueueCall* call, MemObject* memory, bool blocking, const Mapping& mapping,
                 const Submit& submit) {
  Mapping added = mapping;
  if (!blocking) added.pending = call->GetEvent();
  if (memory->use_gate() == nullptr) added.kept = Ref<MemObject>(memory);
  memory->mappings().Add(std::move(added));
  // The shadow stays until the bytes have come, though the unmap may be enqueued by then.
  call->KeepUntilEnd(Ref<MemObject>(memory));
  call->WhenEnded([memory, map_id = mapping.map_id, shadow = mapping.shadow](cl_int status) {
    memory->mappings().SetEnded(map_id, status);
  });
  const cl_int status = submit();
  if (status == CL_SUCCESS) return CL_SUCCESS;
  memory->mappings().Remove(mapping.map_id);
  if (call->ReturnsLateError() && mapping.in_heap) UnmapShared(&call->queue(), *memory, mapping);
  return status;
}

void EncodeMapShared(const MemObject& memory, const Mapping& mapping, pb::EnqueueMapShared* body) {
  body->set_mem_id(memory.id());
  body->set_map_flags(mapping.flags);
  body->set_map_id(mapping.map_id);
  if (memory.is_image()) {
    wire::EncodeSize3(mapping.image_origin, body->mutable_origin());
    wire::EncodeSize3(mapping.image_region, body->mutable_region());
  } else {
    body->set_offset(mapping.offset);
    body->set_size(mapping.bytes);
  }
}

// The very bytes, from `at` on.
cl_int MapInHeap(EnqueueCall* call, MemObject* memory, bool blocking, uint64_t at,
                 Mapping* mapping) {
  mapping->in_heap = true;
  mapping->pointer = memory->heap() + at;
  return SubmitMap(call, memory, blocking, *mapping, [&] {
    pb::EnqueueMapShared& body = *call->command().mutable_enqueue_map_shared();
    EncodeMapShared(*memory, *mapping, &body);
    return blocking ? call->SubmitBlocking(body.mutable_on()) : call->Submit(body.mutable_on());
  });
}

cl_int MapBuffer(EnqueueCall* call, MemObject* buffer, bool blocking, Mapping* mapping) {
  if (buffer->shows_heap()) {
    return MapInHeap(call, buffer, blocking, mapping->offset, mapping);
  }
  uint8_t* memory = HostMemory(buffer, mapping);
  // Section 5.2.4: CL_MEM_OBJECT_ALLOCATION_FAILURE if there is a failure to allocate memory for
  // data store.
  if (memory == nullptr) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
  mapping->pointer = memory + mapping->offset;
  return SubmitMap(call, buffer, blocking, *mapping, [&] {
    if (!NeedsContents(mapping->flags)) return call->SubmitNothing(blocking);
    pb::EnqueueReadBuffer& body = *call->command().mutable_enqueue_read_buffer();
    body.set_mem_id(buffer->id());
    body.set_offset(mapping->offset);
    body.set_size(mapping->bytes);
    return call->SubmitRead(body.mutable_on(), HostRegion(mapping->pointer, mapping->bytes),
                            blocking);
  });
}

// True if the application sees the image as it lies in the heap: it is told one pair of pitches.
bool LiesAsSeen(const MemObject& image) {
  const ImageShape& shape = image.image();
  const wire::ImageLayout& layout = image.heap_layout();
  const bool rows_are_slices = shape.desc.image_type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
  if (rows_are_slices) return shape.slice_pitch == layout.row_pitch;
  return shape.row_pitch == layout.row_pitch &&
         (shape.slice_pitch == 0 || shape.slice_pitch == layout.slice_pitch);
}

cl_int MapImage(EnqueueCall* call, MemObject* image, bool blocking, Mapping* mapping) {
  if (image->shows_heap() && LiesAsSeen(*image)) {
    return MapInHeap(call, image, blocking, image->heap_layout().OffsetOf(mapping->image_origin),
                     mapping);
  }
  uint8_t* memory = HostMemory(image, mapping);
  if (memory == nullptr) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
  const ImageShape& shape = image->image();
  mapping->pointer = memory + ImageOffset(shape, mapping->image_origin);
  return SubmitMap(call, image, blocking, *mapping, [&] {
    if (!NeedsContents(mapping->flags)) return call->SubmitNothing(blocking);
    pb::EnqueueReadImage& body = *call->command().mutable_enqueue_read_image();
    body.set_mem_id(image->id());
    wire::EncodeSize3(mapping->image_origin, body.mutable_origin());
    wire::EncodeSize3(mapping->image_region, body.mutable_region());
    const HostRegion region = ImageHostRegion(shape, mapping->pointer, mapping->image_region,
                                              shape.row_pitch, shape.slice_pitch);
    return call->SubmitRead(body.mutable_on(), region, blocking);
  });
}

cl_int SubmitUnmap(EnqueueCall* call, MemObject* memory, const Mapping& mapping) {
  if (mapping.in_heap) return SubmitUnmapShared(call, *memory, mapping);
  // A mapping that never had the contents sends none back.
  if (!mapping.for_writing() || mapping.failed) return call->SubmitNothing();
  // The bytes are taken from here when the command runs; until then the shadow stays.
  if (mapping.shadow != nullptr) call->WhenEnded([shadow = mapping.shadow](cl_int) {});
  if (memory->is_buffer()) {
    pb::EnqueueWriteBuffer& body = *call->command().mutable_enqueue_write_buffer();
    body.set_mem_id(memory->id());
    body.set_offset(mapping.offset);
    body.set_size(mapping.bytes);
    return call->SubmitWrite(body.mutable_on(), HostRegion::Source(mapping.pointer, mapping.bytes),
                             false);
  }
  const ImageShape& shape = memory->image();
  pb::EnqueueWriteImage& body = *call->command().mutable_enqueue_write_image();
  body.set_mem_id(memory->id());
  wire::EncodeSize3(mapping.image_origin, body.mutable_origin());
  wire::EncodeSize3(mapping.image_region, body.mutable_region());
  const HostRegion region = ImageHostRegion(shape, mapping.pointer, mapping.image_region,
                                            shape.row_pitch, shape.slice_pitch);
  return call->SubmitWrite(body.mutable_on(), region, false);
}

}  // namespace

bool GoesThroughHeap(const Queue& queue, const MemObject& memory, bool blocking, uint64_t bytes) {
  return blocking && memory.heap() != nullptr && bytes > wire::kInlineTransferBytes &&
         !queue.profiles();
}

cl_int CopyThroughHeap(EnqueueCall* call, MemObject* memory, Mapping region,
                       absl::FunctionRef<void()> copy) {
  Queue* queue = &call->queue();
  region.map_id = queue->session().NextId();
  pb::EnqueueMapShared& body = *call->command().mutable_enqueue_map_shared();
  EncodeMapShared(*memory, region, &body);
  const cl_int status = call->SubmitBlocking(body.mutable_on());
  if (status != CL_SUCCESS && !call->ReturnsLateError()) return status;
  copy();
  CL_RETURN_IF_ERROR(UnmapShared(queue, *memory, region));
  return status;
}

HostRegion ImageRegionInHeap(const MemObject& image, const size_t* origin, const size_t* region) {
  const wire::ImageLayout& layout = image.heap_layout();
  return HostRegion(image.heap() + layout.OffsetOf(origin), region[0] * layout.element_bytes,
                    region[1], region[2], layout.row_pitch, layout.slice_pitch);
}

namespace api {

void* CL_API_CALL clEnqueueMapBuffer(cl_command_queue command_queue, cl_mem buffer_handle,
                                     cl_bool blocking_map, cl_map_flags map_flags, size_t offset,
                                     size_t size, cl_uint num_events_in_wait_list,
                                     const cl_event* event_wait_list, cl_event* event,
                                     cl_int* errcode_ret) noexcept {
  Queue* queue = Queue::FromHost(command_queue);
  MemObject* buffer = MemObject::FromBuffer(buffer_handle);
  cl_int status = CheckMap(queue, buffer, map_flags);
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  // Section 5.2.4: CL_INVALID_VALUE if region being mapped given by (offset, size) is out of
  // bounds, or size is 0.
  if (size == 0 || offset > buffer->bytes() || size > buffer->bytes() - offset) {
    return Fail(errcode_ret, CL_INVALID_VALUE);
  }
  status = buffer->CheckAlignment(queue->device());
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  EnqueueCall call(queue, num_events_in_wait_list, event_wait_list, event, CL_COMMAND_MAP_BUFFER);
  status = call.status();
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  Mapping mapping;
  mapping.map_id = queue->session().NextId();
  mapping.flags = map_flags;
  mapping.offset = offset;
  mapping.bytes = size;
  status = MapBuffer(&call, buffer, blocking_map != CL_FALSE, &mapping);
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  Succeed(errcode_ret);
  return mapping.pointer;
}

void* CL_API_CALL clEnqueueMapImage(cl_command_queue command_queue, cl_mem image_handle,
                                    cl_bool blocking_map, cl_map_flags map_flags,
                                    const size_t* origin, const size_t* region,
                                    size_t* image_row_pitch, size_t* image_slice_pitch,
                                    cl_uint num_events_in_wait_list,
                                    const cl_event* event_wait_list, cl_event* event,
                                    cl_int* errcode_ret) noexcept {
  Queue* queue = Queue::FromHost(command_queue);
  MemObject* image = MemObject::FromImage(image_handle);
  cl_int status = CheckMap(queue, image, map_flags);
  if (status == CL_SUCCESS) status = CheckImageRegion(image->image(), origin, region);
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  const ImageShape& shape = image->image();
  // Section 5.3.6: CL_INVALID_VALUE if image_row_pitch is NULL, or if image is a 3D image, 1D or 2D
  // image array object and image_slice_pitch is NULL.
  if (image_row_pitch == nullptr || (shape.slice_pitch != 0 && image_slice_pitch == nullptr)) {
    return Fail(errcode_ret, CL_INVALID_VALUE);
  }
  EnqueueCall call(queue, num_events_in_wait_list, event_wait_list, event, CL_COMMAND_MAP_IMAGE);
  status = call.status();
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  Mapping mapping;
  mapping.map_id = queue->session().NextId();
  mapping.flags = map_flags;
  for (int i = 0; i < 3; ++i) {
    mapping.image_origin[i] = origin[i];
    mapping.image_region[i] = region[i];
  }
  status = MapImage(&call, image, blocking_map != CL_FALSE, &mapping);
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  *image_row_pitch = shape.row_pitch;
  if (image_slice_pitch != nullptr) *image_slice_pitch = shape.slice_pitch;
  Succeed(errcode_ret);
  return mapping.pointer;
}

cl_int CL_API_CALL clEnqueueUnmapMemObject(cl_command_queue command_queue, cl_mem memory_handle,
                                           void* mapped_ptr, cl_uint num_events_in_wait_list,
                                           const cl_event* event_wait_list,
                                           cl_event* event) noexcept {
  Queue* queue = Queue::FromHost(command_queue);
  if (queue == nullptr) return CL_INVALID_COMMAND_QUEUE;
  MemObject* memory = MemObject::From(memory_handle);
  // Section 5.5.2: CL_INVALID_MEM_OBJECT if memobj is not a valid memory object or is a pipe
  // object.
  if (memory == nullptr || memory->is_pipe()) return CL_INVALID_MEM_OBJECT;
  if (&queue->context() != &memory->context()) return CL_INVALID_CONTEXT;
  EnqueueCall call(queue, num_events_in_wait_list, event_wait_list, event,
                   CL_COMMAND_UNMAP_MEM_OBJECT);
  CL_RETURN_IF_ERROR(call.status());
  // CL_INVALID_VALUE if mapped_ptr is not a valid pointer returned by clEnqueueMapBuffer or
  // clEnqueueMapImage for memobj.
  Mapping mapping;
  if (mapped_ptr == nullptr || !memory->mappings().Take(mapped_ptr, &mapping))
    return CL_INVALID_VALUE;
  // Bytes that were written through a mapping are stored by the release after its unmap: a released
  // object is refused, and the mapping stays. One for reading can be given back all the same.
  const cl_int use = memory->Use(mapping.for_writing());
  if (use != CL_SUCCESS && mapping.for_writing()) {
    memory->mappings().Add(std::move(mapping));
    return use;
  }
  const bool released = use != CL_SUCCESS;
  if (mapping.pending) call.WaitAlso(*mapping.pending);
  if (released && !mapping.in_heap) return call.SubmitNothing();
  return SubmitUnmap(&call, memory, mapping);
}

}  // namespace api
}  // namespace sluice::client
