// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/shadow.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client_icd/enqueue.h"
#include "client_icd/sharing/ways.h"
#include "proto/codec.h"
#include "proto/status_macros.h"

namespace sluice::sharing {
namespace {

// What the worker's driver is told of: the buffer that lies in the shadow, or the memory object.
Ref<MemObject> ShadowOf(const Ref<MemObject>& memory) {
  Ref<MemObject> beside = memory->own_shared()->shadow();
  return beside ? beside : memory;
}

// Of the worker's making, all of it: one image of one level in elements that a buffer can hold.
bool IsCopyable(const MemObject& memory) {
  if (memory.is_buffer()) return true;
  const cl_image_desc& desc = memory.image().desc;
  return memory.is_image() && memory.parent() == nullptr && desc.num_samples <= 1 &&
         desc.num_mip_levels <= 1;
}

absl::Status TakeMemory(MemObject* buffer, const pb::ShadowPlacement& placement,
                        ShadowMemory* out) {
  out->fd.reset(buffer->session().transport().TakeDescriptor(buffer->id()));
  if (!out->fd.valid()) return absl::UnavailableError("the worker sent no descriptor");
  if (placement.device_uuid().size() != sizeof(out->device_uuid) ||
      placement.driver_uuid().size() != sizeof(out->driver_uuid) ||
      placement.allocation_bytes() < out->bytes) {
    return absl::InvalidArgumentError("the worker describes its memory impossibly");
  }
  out->allocation_bytes = placement.allocation_bytes();
  placement.device_uuid().copy(reinterpret_cast<char*>(out->device_uuid), sizeof(out->device_uuid));
  placement.driver_uuid().copy(reinterpret_cast<char*>(out->driver_uuid), sizeof(out->driver_uuid));
  return absl::OkStatus();
}

// Makes the buffer in exportable memory, and lets the native object open that.
absl::Status MakeBuffer(MemObject* buffer, uint64_t bytes, NativeObject& native) {
  ScopedCommand command;
  pb::CreateShadowBuffer& body = *command->mutable_create_shadow_buffer();
  body.set_mem_id(buffer->id());
  body.set_context_id(buffer->context().id());
  body.set_flags(WireMemFlags(buffer->flags()));
  body.set_size(bytes);
  pb::Answer answer;
  const cl_int status = buffer->stream().Call(*command, {}, &answer);
  if (status != CL_SUCCESS) {
    return absl::UnavailableError(absl::StrCat(
        "the worker has no shared device memory: ", std::string(answer.shadow().reason()), " (",
        status, ")"));
  }
  ShadowMemory memory;
  memory.bytes = bytes;
  absl::Status attached = TakeMemory(buffer, answer.shadow(), &memory);
  if (attached.ok()) attached = native.AttachShadow(std::move(memory));
  if (attached.ok()) {
    buffer->SetMade({});
  } else {
    buffer->session().ReleaseObject(buffer->id());  // The id may be given again.
  }
  return attached;
}

// The native API makes the shadow, and the memory object is made in it.
absl::Status MakeNativeShadow(MemObject* memory, SharedObject* shared) {
  if (!memory->session().transport().shares_memory())
    return absl::UnimplementedError("the daemon is on another host");
  ASSIGN_OR_RETURN(const ExportedMemory exported, shared->native().MakeShadow());
  const absl::Status imported = ImportExported(memory, exported, shared);
  if (!imported.ok()) shared->native().DropShadow();
  return imported;
}

}  // namespace

uint64_t PackedBytes(const MemObject& memory) {
  if (!memory.is_image()) return memory.bytes();
  uint64_t bytes = memory.image().element_bytes;
  for (const size_t extent : memory.image().extent.v) bytes *= extent;
  return bytes;
}

absl::Status MakeShadowed(MemObject* memory, SharedObject* shared) {
  if (shared->native().MakesShadow()) return MakeNativeShadow(memory, shared);
  if (!shared->native().CanShadow()) {
    return absl::UnimplementedError("the native API opens no memory of another process");
  }
  if (!memory->session().transport().shares_memory()) {
    return absl::UnimplementedError("the daemon is on another host");
  }
  if (!IsCopyable(*memory)) return absl::UnimplementedError("no copies of this kind of image");
  if (memory->is_buffer()) {
    RETURN_IF_ERROR(MakeBuffer(memory, memory->bytes(), shared->native()));
    shared->SetChangesHands();
    return absl::OkStatus();
  }
  // On the heap: GCC 12 takes an empty property list that is moved for one that is not initialised.
  const auto about = std::make_unique<MemObject::Description>();
  about->flags = CL_MEM_READ_WRITE;
  about->bytes = PackedBytes(*memory);
  auto beside =
      Ref<MemObject>::Adopt(new MemObject(Ref<Context>(&memory->context()), std::move(*about)));
  RETURN_IF_ERROR(MakeBuffer(beside.get(), beside->bytes(), shared->native()));
  if (const cl_int status = MakeImage(memory, {}); status != CL_SUCCESS) {
    return absl::UnavailableError(absl::StrCat("the image cannot be made: ", status));
  }
  shared->SetShadow(std::move(beside));
  shared->SetChangesHands();
  return absl::OkStatus();
}

cl_int PostTakeShadow(Queue* queue, const Ref<MemObject>& memory, const Event& after,
                      Ref<Event>* last) {
  const Ref<MemObject> shadow = ShadowOf(memory);
  EnqueueCall take(queue, CL_COMMAND_MARKER);
  CL_RETURN_IF_ERROR(take.status());
  take.WaitAlso(after);
  take.KeepUntilEnd(shadow);
  *last = take.GetEvent();
  pb::EnqueueAcquireShadow& taken = *take.command().mutable_enqueue_acquire_shadow();
  taken.set_mem_id(shadow->id());
  CL_RETURN_IF_ERROR(take.Submit(taken.mutable_on()));
  if (shadow.get() == memory.get()) return CL_SUCCESS;

  EnqueueCall copy(queue, CL_COMMAND_COPY_BUFFER_TO_IMAGE);
  CL_RETURN_IF_ERROR(copy.status());
  copy.WaitAlso(**last);
  copy.KeepUntilEnd(shadow);
  *last = copy.GetEvent();
  pb::EnqueueCopyBufferToImage& copied = *copy.command().mutable_enqueue_copy_buffer_to_image();
  copied.set_buffer_id(shadow->id());
  copied.set_image_id(memory->id());
  const size_t origin[3] = {0, 0, 0};
  EncodeSize3(origin, copied.mutable_origin());
  EncodeSize3(memory->image().extent.v, copied.mutable_region());
  return copy.Submit(copied.mutable_on());
}

cl_int PostGiveShadow(Queue* queue, const Ref<MemObject>& memory, bool written,
                      const Event* acquired, cl_uint num_events, const cl_event* wait_list,
                      Event::Hook then) {
  const Ref<MemObject> shadow = ShadowOf(memory);
  Ref<Event> copied;
  if (written && shadow.get() != memory.get()) {
    EnqueueCall copy(queue, num_events, wait_list, nullptr, CL_COMMAND_COPY_IMAGE_TO_BUFFER);
    CL_RETURN_IF_ERROR(copy.status());
    if (acquired != nullptr) copy.WaitAlso(*acquired);
    copy.KeepUntilEnd(memory);
    copied = copy.GetEvent();
    pb::EnqueueCopyImageToBuffer& body = *copy.command().mutable_enqueue_copy_image_to_buffer();
    body.set_buffer_id(shadow->id());
    body.set_image_id(memory->id());
    const size_t origin[3] = {0, 0, 0};
    EncodeSize3(origin, body.mutable_origin());
    EncodeSize3(memory->image().extent.v, body.mutable_region());
    CL_RETURN_IF_ERROR(copy.Submit(body.mutable_on()));
  }
  EnqueueCall give(queue, copied ? 0 : num_events, copied ? nullptr : wait_list, nullptr,
                   CL_COMMAND_MARKER);
  CL_RETURN_IF_ERROR(give.status());
  if (copied) {
    give.WaitAlso(*copied);
  } else if (acquired != nullptr) {
    give.WaitAlso(*acquired);
  }
  give.KeepUntilEnd(shadow);
  give.SoonWhenEnded(std::move(then));
  pb::EnqueueReleaseShadow& given = *give.command().mutable_enqueue_release_shadow();
  given.set_mem_id(shadow->id());
  return give.Submit(given.mutable_on());
}

}  // namespace sluice::sharing
