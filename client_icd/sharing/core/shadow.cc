// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/core/shadow.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client_icd/base/client_log.h"
#include "client_icd/objects/enqueue.h"
#include "client_icd/sharing/core/ways.h"
#include "proto/codec.h"
#include "proto/status_macros.h"

namespace sluice::client::sharing {
namespace {

// The object that the worker's driver is told of: the buffer that lies in the shadow, or the memory
// object.
Ref<MemObject> ShadowOf(const Ref<MemObject>& memory) {
  Ref<MemObject> beside = SharedOf(*memory)->shadow();
  return beside ? beside : memory;
}

// Of the worker's making, all of it: one image of one level in elements that a buffer can hold.
bool IsCopyable(const MemObject& memory) {
  if (memory.is_buffer()) return true;
  const cl_image_desc& desc = memory.image().desc;
  return memory.is_image() && memory.parent() == nullptr && desc.num_samples <= 1 &&
         desc.num_mip_levels <= 1 &&
         // A driver may answer CL_INVALID_VALUE to copies between them and buffers.
         (desc.image_type != CL_MEM_OBJECT_IMAGE1D_ARRAY || memory.context().buffers_in_heap());
}

absl::Status TakeMemory(const pb::ShadowPlacement& placement, std::vector<os::UniqueFd>* fds,
                        ShadowMemory* out) {
  if (fds->size() != (placement.semaphores() ? 3 : 1))
    return absl::UnavailableError("the worker sent no descriptor");
  out->fd = std::move(fds->front());
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

// On an H200 a signal takes some 100 us from process to process, which the host's way of a buffer
// does not. A buffer's 16 MiB were acquired in 397 us with semaphores and in 261 without, an
// image's in 440 and 453, and released in 300 and 324. SLUICE_SHARING decides in tests.
bool AreSemaphoresWorthIt(bool for_image) {
  if (SharingNames("no-semaphores")) return false;
  return for_image || SharingNames("semaphores");
}

// The rest of the descriptors. An error says why the sides have none in common.
absl::Status TakeSemaphores(MemObject* buffer, const pb::ShadowPlacement& placement, bool wanted,
                            std::vector<os::UniqueFd>* fds, NativeObject& native) {
  if (!wanted) return absl::UnavailableError("they are not worth their time");
  if (!native.CanSignal())
    return absl::UnimplementedError("the native API imports no semaphore of another process");
  if (!placement.semaphores()) return absl::UnimplementedError(placement.no_semaphores());
  const auto stuck = [session = buffer->session().weak_from_this()] {
    const std::shared_ptr<Session> alive = session.lock();
    if (alive != nullptr) alive->Lose("the native API does not finish what it has begun");
  };
  return native.AttachSemaphores({std::move((*fds)[1]), std::move((*fds)[2])}, stuck);
}

void LogSemaphores(const SharedObject& shared, const absl::Status& outcome) {
  if (!ClientLogs(ClientLogLevel::kInfo)) return;
  ClientLog(ClientLogLevel::kInfo,
            absl::StrCat("sharing: ", shared.rules().name, " object's shadow ",
                         outcome.ok() ? "has semaphores" : "has no semaphores: ",
                         outcome.ok() ? "" : outcome.message()));
}

// Makes the buffer in exportable memory, and lets the native object open that.
absl::Status MakeBuffer(MemObject* buffer, uint64_t bytes, bool for_image, SharedObject* shared) {
  NativeObject& native = shared->native();
  const bool semaphores_wanted = AreSemaphoresWorthIt(for_image);
  ScopedCommand command;
  pb::CreateShadowBuffer& body = *command->mutable_create_shadow_buffer();
  body.set_mem_id(buffer->id());
  body.set_context_id(buffer->context().id());
  body.set_flags(WireMemFlags(buffer->flags()));
  body.set_size(bytes);
  body.set_semaphores(native.CanSignal() && semaphores_wanted);
  pb::Answer answer;
  const cl_int status = buffer->stream().Call(*command, {}, &answer);
  const pb::ShadowPlacement& placement = answer.shadow();
  if (status != CL_SUCCESS) {
    return absl::UnavailableError(absl::StrCat("the worker has no shared device memory: ",
                                               std::string(placement.reason()), " (", status, ")"));
  }
  ShadowMemory memory;
  memory.bytes = bytes;
  memory.on_cpu = buffer->context().buffers_in_heap();
  std::vector<os::UniqueFd> fds = buffer->session().transport().TakeDescriptors(buffer->id());
  absl::Status attached = TakeMemory(placement, &fds, &memory);
  if (attached.ok()) attached = native.AttachShadow(std::move(memory));
  if (!attached.ok()) {
    buffer->session().ReleaseObject(buffer->id());  // The id may be given again.
    return attached;
  }
  buffer->SetMade({});
  ShadowAbilities abilities;
  abilities.copies_images = placement.copies_images();
  const absl::Status semaphores =
      TakeSemaphores(buffer, placement, semaphores_wanted, &fds, native);
  if (semaphores.ok()) abilities.semaphores = std::make_shared<SemaphoreTurns>();
  LogSemaphores(*shared, semaphores);
  shared->SetShadowAbilities(std::move(abilities));
  return absl::OkStatus();
}

// True if a change of hands copies what has to be copied; else a copy must go beside it.
bool CopiesOnTheWay(const MemObject& memory) {
  const SharedObject& shared = *SharedOf(memory);
  return !shared.shadow() || (memory.is_image() && shared.shadow_abilities().copies_images);
}
template <typename Body>
void NameImage(const MemObject& memory, Body* body) {
  if (!SharedOf(memory)->shadow() || !CopiesOnTheWay(memory)) return;
  body->set_image_id(memory.id());
  wire::EncodeSize3(memory.image().extent.v, body->mutable_region());
}

// A copy of all of it, to or from the buffer in the shadow.
cl_int PostCopy(EnqueueCall* copy, const MemObject& memory, const MemObject& shadow,
                bool to_shadow) {
  const size_t origin[3] = {0, 0, 0};
  if (!memory.is_image()) {
    pb::EnqueueCopyBuffer& body = *copy->command().mutable_enqueue_copy_buffer();
    body.set_source_id(to_shadow ? memory.id() : shadow.id());
    body.set_destination_id(to_shadow ? shadow.id() : memory.id());
    body.set_size(memory.bytes());
    return copy->Submit(body.mutable_on());
  }
  if (to_shadow) {
    pb::EnqueueCopyImageToBuffer& body = *copy->command().mutable_enqueue_copy_image_to_buffer();
    body.set_buffer_id(shadow.id());
    body.set_image_id(memory.id());
    wire::EncodeSize3(origin, body.mutable_origin());
    wire::EncodeSize3(memory.image().extent.v, body.mutable_region());
    return copy->Submit(body.mutable_on());
  }
  pb::EnqueueCopyBufferToImage& body = *copy->command().mutable_enqueue_copy_buffer_to_image();
  body.set_buffer_id(shadow.id());
  body.set_image_id(memory.id());
  wire::EncodeSize3(origin, body.mutable_origin());
  wire::EncodeSize3(memory.image().extent.v, body.mutable_region());
  return copy->Submit(body.mutable_on());
}
cl_command_type CopyType(const MemObject& memory, bool to_shadow) {
  if (!memory.is_image()) return CL_COMMAND_COPY_BUFFER;
  return to_shadow ? CL_COMMAND_COPY_IMAGE_TO_BUFFER : CL_COMMAND_COPY_BUFFER_TO_IMAGE;
}

// An image, or a buffer, of its own beside a buffer in the shadow, which `make_buffer` makes.
template <typename Make>
absl::Status MakeBeside(MemObject* memory, SharedObject* shared, Make make_buffer) {
  if (!IsCopyable(*memory)) return absl::UnimplementedError("no copies of this kind of image");
  // On the heap: GCC 12 takes an empty property list that is moved for one that is not initialised.
  const auto about = std::make_unique<MemObject::Description>();
  about->flags = CL_MEM_READ_WRITE;
  about->bytes = PackedBytes(*memory);
  auto beside =
      Ref<MemObject>::Adopt(new MemObject(Ref<Context>(&memory->context()), std::move(*about)));
  RETURN_IF_ERROR(make_buffer(beside.get()));
  const cl_int status =
      memory->is_image() ? MakeImage(memory, {}) : client::MakeBuffer(memory, nullptr);
  if (status != CL_SUCCESS)
    return absl::UnavailableError(absl::StrCat("what is beside it cannot be made: ", status));
  shared->SetShadow(std::move(beside));
  shared->SetChangesHands();
  return absl::OkStatus();
}

// The native API makes the shadow, and the memory object is made in it.
absl::Status MakeNativeShadow(MemObject* memory, SharedObject* shared) {
  ASSIGN_OR_RETURN(const ExportedMemory exported, shared->native().MakeShadow());
  const auto import = [&](MemObject* buffer) { return ImportExported(buffer, exported, shared); };
  if (exported.kind == ExportedMemory::Kind::kOpaqueFd) {
    shared->SetShadowAbilities({.copies_images = true});  // As all workers that open such memory.
    return MakeBeside(memory, shared, import);
  }
  const absl::Status imported = import(memory);
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
  const NativeObject& native = shared->native();
  if (!native.MakesShadow() && !native.CanShadow())
    return absl::UnimplementedError("the native API opens no memory of another process");
  if (!memory->session().transport().shares_memory())
    return absl::UnimplementedError("the daemon is on another host");
  if (native.MakesShadow()) return MakeNativeShadow(memory, shared);
  const bool is_image = memory->is_image();
  if (is_image || !memory->context().makes_usable_images()) {
    return MakeBeside(memory, shared, [is_image, shared](MemObject* buffer) {
      return MakeBuffer(buffer, buffer->bytes(), /*for_image=*/is_image, shared);
    });
  }
  if (!IsCopyable(*memory)) return absl::UnimplementedError("no copies of this kind of object");
  RETURN_IF_ERROR(MakeBuffer(memory, memory->bytes(), /*for_image=*/false, shared));
  shared->SetChangesHands();
  return absl::OkStatus();
}

cl_int PostTakeShadow(Queue* queue, const Ref<MemObject>& memory, const Event& after,
                      ShadowSync sync, Ref<Event>* last) {
  const Ref<MemObject> shadow = ShadowOf(memory);
  EnqueueCall take(queue, CL_COMMAND_MARKER);
  CL_RETURN_IF_ERROR(take.status());
  take.WaitAlso(after);
  take.KeepUntilEnd(shadow);
  if (sync == ShadowSync::kSemaphore) {
    take.WhenEnded([turns = SharedOf(*memory)->shadow_abilities().semaphores](cl_int status) {
      if (status == CL_COMPLETE) turns->Return(SemaphoreTurns::kToOpenCl);
    });
  }
  *last = take.GetEvent();
  pb::EnqueueAcquireShadow& taken = *take.command().mutable_enqueue_acquire_shadow();
  taken.set_mem_id(shadow->id());
  taken.set_wait_semaphore(sync == ShadowSync::kSemaphore);
  NameImage(*memory, &taken);
  CL_RETURN_IF_ERROR(take.Submit(taken.mutable_on()));
  if (CopiesOnTheWay(*memory)) return CL_SUCCESS;

  EnqueueCall copy(queue, CopyType(*memory, /*to_shadow=*/false));
  CL_RETURN_IF_ERROR(copy.status());
  copy.WaitAlso(**last);
  copy.KeepUntilEnd(shadow);
  *last = copy.GetEvent();
  return PostCopy(&copy, *memory, *shadow, /*to_shadow=*/false);
}

cl_int PostGiveShadow(Queue* queue, const Ref<MemObject>& memory, const GiveShadow& give,
                      Event::Hook then) {
  const Ref<MemObject> shadow = ShadowOf(memory);
  Ref<Event> copied;
  if (give.written && !CopiesOnTheWay(*memory)) {
    EnqueueCall copy(queue, give.num_events, give.wait_list, nullptr,
                     CopyType(*memory, /*to_shadow=*/true));
    CL_RETURN_IF_ERROR(copy.status());
    if (give.acquired != nullptr) copy.WaitAlso(*give.acquired);
    copy.KeepUntilEnd(memory);
    copied = copy.GetEvent();
    CL_RETURN_IF_ERROR(PostCopy(&copy, *memory, *shadow, /*to_shadow=*/true));
  }
  EnqueueCall call(queue, copied ? 0 : give.num_events, copied ? nullptr : give.wait_list, nullptr,
                   CL_COMMAND_MARKER);
  CL_RETURN_IF_ERROR(call.status());
  if (copied) {
    call.WaitAlso(*copied);
  } else if (give.acquired != nullptr) {
    call.WaitAlso(*give.acquired);
  }
  call.KeepUntilEnd(shadow);
  call.SoonWhenEnded(std::move(then));
  pb::EnqueueReleaseShadow& given = *call.command().mutable_enqueue_release_shadow();
  given.set_mem_id(shadow->id());
  given.set_signal_semaphore(give.sync == ShadowSync::kSemaphore);
  if (give.written) NameImage(*memory, &given);
  return call.Submit(given.mutable_on());
}

}  // namespace sluice::client::sharing
