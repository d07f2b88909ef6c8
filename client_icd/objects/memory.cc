// SPDX-License-Identifier: Apache-2.0
#include "client_icd/objects/memory.h"

#include <CL/cl_ext.h>

#include <bit>
#include <cstring>

#include "client_icd/base/api.h"
#include "client_icd/objects/event.h"
#include "client_icd/objects/extensions.h"
#include "client_icd/objects/svm.h"
#include "client_icd/session/pending_releases.h"
#include "proto/frame.h"

namespace sluice::client {
namespace {

constexpr cl_mem_flags kAccessFlags = CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY;
constexpr cl_mem_flags kHostPtrFlags =
    CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR;
constexpr cl_mem_flags kHostAccessFlags =
    CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS;

bool MoreThanOne(cl_mem_flags flags) { return std::popcount(flags) > 1; }

}  // namespace

cl_ulong MaxAllocation(const Context& context) {
  cl_ulong largest = 0;
  for (const Device* device : context.devices()) {
    const cl_ulong bytes =
        device->info().Scalar<cl_ulong>(CL_DEVICE_MAX_MEM_ALLOC_SIZE, ~cl_ulong{0});
    if (bytes > largest) largest = bytes;
  }
  return largest;
}

cl_int CheckMemFlags(cl_mem_flags flags) {
  // Section 5.2.1: CL_INVALID_VALUE if values specified in flags are not valid as defined in the
  // memory flags table, which makes each of these groups exclusive, and USE_HOST_PTR with either of
  // the other two.
  if ((flags & ~(kAccessFlags | kHostPtrFlags | kHostAccessFlags | CL_MEM_KERNEL_READ_AND_WRITE)) !=
      0) {
    return CL_INVALID_VALUE;
  }
  if (MoreThanOne(flags & kAccessFlags) || MoreThanOne(flags & kHostAccessFlags))
    return CL_INVALID_VALUE;
  if ((flags & CL_MEM_USE_HOST_PTR) != 0 && MoreThanOne(flags & kHostPtrFlags))
    return CL_INVALID_VALUE;
  return CL_SUCCESS;
}

cl_int CheckHostPtr(cl_mem_flags flags, const void* host_ptr) {
  // Section 5.2.1: CL_INVALID_HOST_PTR if host_ptr is NULL and CL_MEM_USE_HOST_PTR or
  // CL_MEM_COPY_HOST_PTR are set in flags, or if host_ptr is not NULL but neither of them is set.
  const bool wanted = (flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR)) != 0;
  return wanted == (host_ptr != nullptr) ? CL_SUCCESS : CL_INVALID_HOST_PTR;
}

cl_int InheritMemFlags(cl_mem_flags parent, cl_mem_flags* flags) {
  // Section 5.2.1, clCreateSubBuffer: CL_INVALID_VALUE if the buffer was created with
  // CL_MEM_WRITE_ONLY and flags specifies CL_MEM_READ_WRITE or CL_MEM_READ_ONLY, and so on; or if
  // flags specifies a CL_MEM_*_HOST_PTR.
  if ((*flags & kHostPtrFlags) != 0) return CL_INVALID_VALUE;
  if ((parent & CL_MEM_WRITE_ONLY) != 0 && (*flags & (CL_MEM_READ_WRITE | CL_MEM_READ_ONLY)) != 0) {
    return CL_INVALID_VALUE;
  }
  if ((parent & CL_MEM_READ_ONLY) != 0 && (*flags & (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY)) != 0) {
    return CL_INVALID_VALUE;
  }
  if ((parent & CL_MEM_HOST_WRITE_ONLY) != 0 && (*flags & CL_MEM_HOST_READ_ONLY) != 0)
    return CL_INVALID_VALUE;
  if ((parent & CL_MEM_HOST_READ_ONLY) != 0 && (*flags & CL_MEM_HOST_WRITE_ONLY) != 0)
    return CL_INVALID_VALUE;
  if ((parent & CL_MEM_HOST_NO_ACCESS) != 0 &&
      (*flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY)) != 0) {
    return CL_INVALID_VALUE;
  }
  if ((*flags & kAccessFlags) == 0) *flags |= parent & kAccessFlags;
  if ((*flags & kHostAccessFlags) == 0) *flags |= parent & kHostAccessFlags;
  *flags |= parent & kHostPtrFlags;
  return CL_SUCCESS;
}

cl_mem_flags WireMemFlags(cl_mem_flags flags) {
  return flags & ~(CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR | CL_MEM_USE_GRALLOC_PTR_IMG |
                   kHostAccessFlags);
}

bool IsAligned(uint64_t origin, const Device& device) {
  const uint64_t bits = device.info().Scalar<cl_uint>(CL_DEVICE_MEM_BASE_ADDR_ALIGN, 8);
  return bits < 8 || origin % (bits / 8) == 0;
}

bool LayOutInHeap(const ImageShape& shape, bool of_buffer, const pb::MemoryPlacement& placement,
                  wire::ImageLayout* out) {
  return placement.in_heap() &&
         wire::LayOutImage(shape.desc, shape.element_bytes, of_buffer ? shape.row_pitch : 0, out) &&
         placement.element_size() == out->element_bytes &&
         placement.row_pitch() == out->row_pitch && placement.slice_pitch() == out->slice_pitch;
}

MemObject::MemObject(Ref<Context> context, Description description)
    : ClObject(context->session().NextId()),
      context_(std::move(context)),
      about_(std::move(description)),
      gate_(about_.native != nullptr ? about_.native->gate()
            : about_.parent          ? about_.parent->use_gate()
                                     : nullptr) {
  if (gate_ != nullptr) gate_->AddHolder(this);
}

MemObject::~MemObject() {
  if (ends_soon_.load(std::memory_order_relaxed) && !session().forked()) stream().DropEager();
  if (mirror_ != nullptr) session().mirrors().Remove(mirror_);
  if (made_) {
    if (about_.native != nullptr) about_.native->ReleaseAfterUse(session(), id());
    about_.native = nullptr;  // Before anybody can be told that the object has gone.
    session().ReleaseObject(id());
  }
  if (gate_ != nullptr) gate_->RemoveHolder(this);
}

bool MemObject::ReleaseByApp() {
  const Ref<MemObject> keep(this);
  if (native() != nullptr && app_count() == 1) context().CollectEnded();
  if (!ReleaseForApp()) return false;
  if (app_count() == 0 && session().lost() && !session().forked()) mappings_.Release();
  if (native() != nullptr && app_count() == 0 && !session().forked() &&
      !ends_soon_.exchange(true, std::memory_order_relaxed)) {
    stream().AddEager();
  }
  return true;
}

MemObject* MemObject::FromBuffer(cl_mem handle) {
  MemObject* memory = From(handle);
  return memory != nullptr && memory->is_buffer() ? memory : nullptr;
}

MemObject* MemObject::FromImage(cl_mem handle) {
  MemObject* memory = From(handle);
  return memory != nullptr && memory->is_image() ? memory : nullptr;
}

MemObject* MemObject::FromPipe(cl_mem handle) {
  MemObject* memory = From(handle);
  return memory != nullptr && memory->is_pipe() ? memory : nullptr;
}

cl_int MemObject::SetMade(const pb::MemoryPlacement& placement) {
  made_ = true;
  if (is_image()) return FindImage(placement);
  if (!is_buffer()) return CL_SUCCESS;
  const wire::BulkSpan span = {placement.segment(), placement.offset(), about_.bytes};
  if (about_.parent) {
    if (about_.parent->heap() != nullptr) heap_ = about_.parent->heap() + about_.origin;
  } else if (placement.in_heap()) {
    return MapHeap(span);
  } else if (placement.is_mirror()) {
    mirror_ = session().transport().Map(span);
    if (mirror_ != nullptr) session().mirrors().Add(mirror_, about_.bytes, id());
  }
  return CL_SUCCESS;
}

cl_int MemObject::FindImage(const pb::MemoryPlacement& placement) {
  const MemObject* parent = about_.parent.get();
  if ((parent != nullptr && !parent->is_buffer()) ||
      !LayOutInHeap(image(), parent != nullptr, placement, &heap_layout_)) {
    return CL_SUCCESS;
  }
  if (parent == nullptr)
    return MapHeap({placement.segment(), placement.offset(), heap_layout_.bytes});
  heap_ = heap_layout_.bytes <= parent->bytes() ? parent->heap() : nullptr;
  return CL_SUCCESS;
}

// Few bytes travel in their commands; more would need other memory of the heap, which is no more to
// be had than this.
cl_int MemObject::MapHeap(const wire::BulkSpan& span) {
  heap_ = session().transport().Map(span);
  if (heap_ != nullptr || !session().transport().shares_memory() ||
      span.size <= wire::kInlineTransferBytes)
    return CL_SUCCESS;
  return session().lost() ? session().lost_code() : CL_MEM_OBJECT_ALLOCATION_FAILURE;
}

cl_int MemObject::CheckHostRead() const {
  return (about_.flags & (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS)) != 0
             ? CL_INVALID_OPERATION
             : CL_SUCCESS;
}

cl_int MemObject::CheckHostWrite() const {
  return (about_.flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS)) != 0
             ? CL_INVALID_OPERATION
             : CL_SUCCESS;
}

cl_int MemObject::CheckAlignment(const Device& device) const {
  const bool is_sub_buffer = is_buffer() && about_.parent;
  return is_sub_buffer && !IsAligned(about_.origin, device) ? CL_MISALIGNED_SUB_BUFFER_OFFSET
                                                            : CL_SUCCESS;
}

cl_int MemObject::GetInfo(cl_mem_info param_name, const InfoSink& sink) {
  switch (param_name) {
    case CL_MEM_TYPE:
      return sink.Value<cl_mem_object_type>(about_.type);
    case CL_MEM_FLAGS:
      return sink.Value<cl_mem_flags>(about_.flags);
    case CL_MEM_SIZE:
      if (is_buffer()) return sink.Value<size_t>(about_.bytes);
      break;
    case CL_MEM_HOST_PTR:
      // Section 5.5.5: the host_ptr argument if CL_MEM_USE_HOST_PTR is specified, for sub-buffers
      // plus origin; else NULL.
      return sink.Value<void*>(about_.host_ptr);
    case CL_MEM_MAP_COUNT:
      return sink.Value<cl_uint>(mappings_.count());
    case CL_MEM_REFERENCE_COUNT:
      return sink.Value<cl_uint>(app_count());
    case CL_MEM_CONTEXT:
      return sink.Value<cl_context>(context_->handle());
    case CL_MEM_ASSOCIATED_MEMOBJECT:
      return sink.Value<cl_mem>(parent_handle());
    case CL_MEM_OFFSET:
      return sink.Value<size_t>(is_buffer() ? about_.origin : 0);
    case CL_MEM_USES_SVM_POINTER:
      // Section 5.5.5: of buffer objects.
      return sink.Value<cl_bool>(is_buffer() && uses_svm() ? CL_TRUE : CL_FALSE);
    case CL_MEM_PROPERTIES:
      return sink.Array(about_.properties.WithTerminator());
    default:
      break;
  }
  if (const std::optional<cl_int> answer = GetSharedInfo(param_name, sink)) return *answer;
  return WireInfo(session(), {pb::GetInfo::MEMORY, id(), param_name}, sink);
}

cl_int MakePart(MemObject* memory, uint64_t parent_id, uint64_t origin) {
  ScopedCommand command;
  pb::CreateSubBuffer& body = *command->mutable_create_sub_buffer();
  body.set_mem_id(memory->id());
  body.set_parent_id(parent_id);
  body.set_flags(WireMemFlags(memory->flags()) & ~cl_mem_flags{CL_MEM_ALLOC_HOST_PTR});
  body.set_origin(origin);
  body.set_size(memory->bytes());
  // The answer says where shared virtual memory lies; a buffer's part lies in the buffer.
  const bool asks = memory->parent() == nullptr;
  pb::Answer answer;
  CL_RETURN_IF_ERROR(memory->context().Create(*command, {}, {.needs_answer = asks}, &answer));
  return memory->SetMade(answer.memory());
}

cl_int MakeBuffer(MemObject* memory, const void* contents) {
  Context& context = memory->context();
  ScopedCommand command;
  pb::CreateBuffer& body = *command->mutable_create_buffer();
  body.set_mem_id(memory->id());
  body.set_context_id(context.id());
  body.set_flags(WireMemFlags(memory->flags()));
  body.set_size(memory->bytes());
  body.set_staged(memory->is_staged());
  const bool fill_later = contents != nullptr && FillsLater(context, memory->bytes());
  // A few bytes that travel as payload gain nothing.
  body.set_mirror((memory->flags() & CL_MEM_ALLOC_HOST_PTR) != 0 && !context.buffers_in_heap() &&
                  memory->bytes() > wire::kInlineTransferBytes &&
                  memory->session().transport().shares_memory());
  std::string_view payload;
  if (contents != nullptr && !fill_later)
    payload = {static_cast<const char*>(contents), memory->bytes()};
  Creation creation;
  creation.memory_bytes = memory->bytes();
  creation.needs_answer = context.buffers_in_heap() || body.mirror();
  pb::Answer answer;
  CL_RETURN_IF_ERROR(context.Create(*command, payload, creation, &answer));
  CL_RETURN_IF_ERROR(memory->SetMade(answer.memory()));
  return fill_later ? FillNew(memory, HostRegion::Source(contents, memory->bytes())) : CL_SUCCESS;
}

bool FillsLater(const Context& context, uint64_t bytes) {
  return bytes >
         (context.buffers_in_heap() ? wire::kInlineTransferBytes : wire::kMaxInitialPayloadBytes);
}

cl_int FillNew(MemObject* memory, const HostRegion& contents) {
  if (memory->heap() != nullptr) {
    contents.Gather(0, contents.packed_bytes(), memory->heap());
    return CL_SUCCESS;
  }
  Session& session = memory->session();
  const Ref<Event> event =
      Ref<Event>::Adopt(new Event(Ref<Context>(&memory->context()), CL_COMMAND_WRITE_BUFFER));
  event->SetTransfer(Event::Direction::kFromHost, contents);
  ScopedCommand command;
  pb::WriteInitialContents& body = *command->mutable_write_initial_contents();
  body.set_mem_id(memory->id());
  body.mutable_on()->set_event_id(event->id());
  body.mutable_on()->set_unnamed(true);
  if (!session.stream().Track(&event->pending())) return session.lost_code();
  if (!session.stream().Post(*command) && session.stream().Untrack(&event->pending()))
    return session.lost_code();
  const cl_int status = session.stream().WaitFor(&event->pending());
  return session.lost() ? session.lost_code() : status;
}

namespace {

cl_mem CreateBuffer(cl_context context_handle, const cl_mem_properties* properties,
                    cl_mem_flags flags, size_t size, void* host_ptr, cl_int* errcode_ret) {
  Context* context = Context::From(context_handle);
  if (context == nullptr) return Fail(errcode_ret, CL_INVALID_CONTEXT);
  MemObject::Description about;
  // Section 5.2.1: CL_INVALID_PROPERTY if a property name in properties is not a supported property
  // name. None is.
  if (!ReadProperties(properties, &about.properties) || !about.properties.words.empty()) {
    return Fail(errcode_ret, CL_INVALID_PROPERTY);
  }
  for (const InteropExtension* one : InteropExtensions()) {
    if ((flags & one->buffer_flags) != 0)
      return one->create_buffer(context, about.properties, flags, size, host_ptr, errcode_ret);
  }
  cl_int status = CheckMemFlags(flags);
  // CL_INVALID_VALUE: CL_MEM_KERNEL_READ_AND_WRITE is only for clGetSupportedImageFormats.
  if ((flags & CL_MEM_KERNEL_READ_AND_WRITE) != 0) status = CL_INVALID_VALUE;
  // CL_INVALID_BUFFER_SIZE if size is 0, or greater than CL_DEVICE_MAX_MEM_ALLOC_SIZE for all
  // devices in context.
  if (status == CL_SUCCESS && (size == 0 || size > MaxAllocation(*context)))
    status = CL_INVALID_BUFFER_SIZE;
  if (status == CL_SUCCESS) status = CheckHostPtr(flags, host_ptr);
  // CL_INVALID_BUFFER_SIZE if CL_MEM_USE_HOST_PTR is set in flags and host_ptr is a pointer
  // returned by clSVMAlloc and size is greater than the size passed to clSVMAlloc.
  std::optional<SvmPlace> svm;
  if ((flags & CL_MEM_USE_HOST_PTR) != 0) svm = FindSvm(*context, host_ptr);
  if (status == CL_SUCCESS && svm.has_value() && size > svm->bytes) status = CL_INVALID_BUFFER_SIZE;
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);

  about.flags = flags;
  about.bytes = size;
  if ((flags & CL_MEM_USE_HOST_PTR) != 0) about.host_ptr = host_ptr;
  auto memory = Ref<MemObject>::Adopt(new MemObject(Ref<Context>(context), std::move(about)));
  status = svm.has_value() ? MakePart(memory.get(), svm->svm_id, svm->offset)
                           : MakeBuffer(memory.get(), host_ptr);
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  Succeed(errcode_ret);
  return memory.Detach()->handle();
}

// The region of a new sub-buffer (section 5.2.1).
cl_int CheckSubBuffer(const MemObject& parent, cl_buffer_create_type type, const void* info) {
  // CL_INVALID_VALUE if the value specified in buffer_create_type is not valid, or
  // buffer_create_info is NULL.
  if (type != CL_BUFFER_CREATE_TYPE_REGION || info == nullptr) return CL_INVALID_VALUE;
  const auto& region = *static_cast<const cl_buffer_region*>(info);
  // CL_INVALID_BUFFER_SIZE if the size of the region is 0.
  if (region.size == 0) return CL_INVALID_BUFFER_SIZE;
  // CL_INVALID_VALUE if the region specified by (origin, size) is out of bounds in buffer.
  if (region.origin > parent.bytes() || region.size > parent.bytes() - region.origin)
    return CL_INVALID_VALUE;
  // CL_MISALIGNED_SUB_BUFFER_OFFSET if there are no devices in context for which origin is aligned.
  for (const Device* device : parent.context().devices()) {
    if (IsAligned(region.origin, *device)) return CL_SUCCESS;
  }
  return CL_MISALIGNED_SUB_BUFFER_OFFSET;
}

}  // namespace

namespace api {

cl_mem CL_API_CALL clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size,
                                  void* host_ptr, cl_int* errcode_ret) noexcept {
  return CreateBuffer(context, nullptr, flags, size, host_ptr, errcode_ret);
}

cl_mem CL_API_CALL clCreateBufferWithProperties(cl_context context,
                                                const cl_mem_properties* properties,
                                                cl_mem_flags flags, size_t size, void* host_ptr,
                                                cl_int* errcode_ret) noexcept {
  return CreateBuffer(context, properties, flags, size, host_ptr, errcode_ret);
}

cl_mem CL_API_CALL clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags,
                                     cl_buffer_create_type buffer_create_type,
                                     const void* buffer_create_info, cl_int* errcode_ret) noexcept {
  MemObject* parent = MemObject::FromBuffer(buffer);
  // Section 5.2.1: CL_INVALID_MEM_OBJECT if buffer is not a valid buffer object or is a sub-buffer
  // object.
  if (parent == nullptr || parent->parent() != nullptr)
    return Fail(errcode_ret, CL_INVALID_MEM_OBJECT);
  cl_int status = CheckMemFlags(flags);
  if ((flags & CL_MEM_KERNEL_READ_AND_WRITE) != 0) status = CL_INVALID_VALUE;
  if (status == CL_SUCCESS) status = InheritMemFlags(parent->flags(), &flags);
  if (status == CL_SUCCESS)
    status = CheckSubBuffer(*parent, buffer_create_type, buffer_create_info);
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);

  const auto& region = *static_cast<const cl_buffer_region*>(buffer_create_info);
  MemObject::Description about;
  about.flags = flags;
  about.bytes = region.size;
  about.origin = region.origin;
  if (parent->uses_host_ptr()) about.host_ptr = parent->host_ptr() + region.origin;
  about.parent = Ref<MemObject>(parent);
  auto memory =
      Ref<MemObject>::Adopt(new MemObject(Ref<Context>(&parent->context()), std::move(about)));
  status = MakePart(memory.get(), parent->id(), region.origin);
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  Succeed(errcode_ret);
  return memory.Detach()->handle();
}

cl_int CL_API_CALL clRetainMemObject(cl_mem memory) noexcept {
  return RetainHandle<MemObject>(memory, CL_INVALID_MEM_OBJECT);
}

cl_int CL_API_CALL clReleaseMemObject(cl_mem handle) noexcept {
  MemObject* memory = MemObject::From(handle);
  if (memory == nullptr) return CL_INVALID_MEM_OBJECT;
  const bool is_shared = memory->native() != nullptr;
  if (!memory->ReleaseByApp()) return CL_INVALID_MEM_OBJECT;
  if (is_shared) PendingReleases::Await();
  return CL_SUCCESS;
}

cl_int CL_API_CALL clGetMemObjectInfo(cl_mem memory_handle, cl_mem_info param_name,
                                      size_t param_value_size, void* param_value,
                                      size_t* param_value_size_ret) noexcept {
  MemObject* memory = MemObject::From(memory_handle);
  if (memory == nullptr) return CL_INVALID_MEM_OBJECT;
  return memory->GetInfo(param_name, InfoSink(param_value_size, param_value, param_value_size_ret));
}

cl_int CL_API_CALL clSetMemObjectDestructorCallback(cl_mem memory_handle,
                                                    void(CL_CALLBACK* pfn_notify)(cl_mem memobj,
                                                                                  void* user_data),
                                                    void* user_data) noexcept {
  MemObject* memory = MemObject::From(memory_handle);
  if (memory == nullptr) return CL_INVALID_MEM_OBJECT;
  // Section 5.5.1: CL_INVALID_VALUE if pfn_notify is NULL.
  if (pfn_notify == nullptr) return CL_INVALID_VALUE;
  CL_RETURN_IF_ERROR(memory->session().callbacks().Ready());
  memory->session().AddDestructorCallback(memory->id(),
                                          [=] { pfn_notify(memory_handle, user_data); });
  return CL_SUCCESS;
}

}  // namespace api
}  // namespace sluice::client
