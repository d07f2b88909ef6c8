// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "broker/os/local_socket.h"
#include "daemon/worker/handlers/handlers.h"
#include "daemon/worker/memory/change_of_hands.h"
#include "daemon/worker/memory/shadow_semaphores.h"
#include "daemon/worker/memory/shadows.h"
#include "daemon/worker/memory/transfers.h"
#include "daemon/worker/queues/enqueuer.h"
#include "proto/codec.h"
#include "proto/handle_messages.h"
#include "proto/status_macros.h"

namespace sluice::worker {
namespace {

std::string Bytes(const os::DeviceUuid& uuid) { return std::string(uuid.begin(), uuid.end()); }

using SemaphoreFds = std::array<os::UniqueFd, 2>;

// The descriptors for the client.
absl::StatusOr<SemaphoreFds> MakeSemaphores(MemoryObject* memory) {
  if (memory->hands->acquire == nullptr) {
    return absl::UnimplementedError("the device works in the host's memory");
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<const ShadowSemaphores> made,
                   ShadowSemaphores::Make(*memory->context, *memory->shadow()->buffer->device));
  ASSIGN_OR_RETURN(SemaphoreFds fds, made->Export());
  std::get<InShadow>(memory->placement).semaphores = made;
  return fds;
}

absl::Status SendShadow(Session& session, const MemoryObject& memory,
                        const SemaphoreFds& semaphores) {
  ASSIGN_OR_RETURN(const os::UniqueFd fd, memory.shadow()->buffer->memory->Export());
  wire::HandleMessage message = {};
  message.magic = wire::kHandleMagic;
  message.type = wire::HandleMessageType::kShadowMemory;
  message.size = memory.shadow()->buffer->memory->allocation_bytes();
  message.address = memory.id;
  const int descriptors[] = {fd.get(), semaphores[0].get(), semaphores[1].get()};
  return os::SendMessage(session.handle_channel(), &message, sizeof(message), descriptors,
                         memory.shadow()->semaphores != nullptr ? 3 : 1);
}

// An object that changes hands, a shadow or an imported texture, and what happens to it on the way.
struct HandOver {
  std::shared_ptr<MemoryObject> memory;
  std::shared_ptr<MemoryObject> image;  // Null: nothing is copied.
  wire::Size3 region;
  bool semaphore = false;
};

constexpr size_t kOrigin[3] = {0, 0, 0};

cl_int CopyToImage(const HandOver& what, cl_command_queue queue, cl_uint waits,
                   const cl_event* list, cl_event* event) {
  return cl().clEnqueueCopyBufferToImage(queue, what.memory->handle.get(), what.image->handle.get(),
                                         what.memory->image_offset, kOrigin, what.region, waits,
                                         list, event);
}
cl_int CopyFromImage(const HandOver& what, cl_command_queue queue, cl_uint waits,
                     const cl_event* list, cl_event* event) {
  return cl().clEnqueueCopyImageToBuffer(queue, what.image->handle.get(), what.memory->handle.get(),
                                         kOrigin, what.region, what.memory->image_offset, waits,
                                         list, event);
}

// For a driver that is told. Into the context's own queue, which is in order: nothing that the
// application enqueued may come between.
cl_int EnqueueAcquire(const HandOver& what, cl_command_queue queue, cl_event* ended) {
  const cl_mem handle = what.memory->handle.get();
  cl_int status = what.memory->hands->TakeMutex();
  if (status == CL_SUCCESS && what.semaphore)
    status = what.memory->shadow()->semaphores->EnqueueWait(queue);
  if (status != CL_SUCCESS) return status;
  cl_event* const acquired = what.image == nullptr ? ended : nullptr;
  status = what.memory->hands->acquire(queue, 1, &handle, 0, nullptr, acquired);
  if (status != CL_SUCCESS) return status;
  what.memory->hands->driver_has_it = true;
  if (what.image == nullptr) return status;
  return CopyToImage(what, queue, 0, nullptr, ended);
}

// With a semaphore it has ended for the host once the device has been told: the client's API waits
// on the device for the rest.
cl_int EnqueueRelease(const HandOver& what, cl_command_queue queue, cl_event* ended) {
  const cl_mem handle = what.memory->handle.get();
  cl_int status = CL_SUCCESS;
  if (what.image != nullptr) status = CopyFromImage(what, queue, 0, nullptr, nullptr);
  if (status != CL_SUCCESS) return status;
  cl_event* const released = what.semaphore ? nullptr : ended;
  what.memory->hands->driver_has_it = false;
  status = what.memory->hands->release(queue, 1, &handle, 0, nullptr, released);
  if (status != CL_SUCCESS || !what.semaphore) return status;
  return what.memory->shadow()->semaphores->EnqueueSignal(queue);
}

// Enqueued commands are flushed also if the rest fails: a wait that begins after the client has
// released its semaphore would never end.
template <typename Enqueue>
cl_int Tell(const HandOver& what, Enqueue enqueue, cl_event* ended) {
  const cl_command_queue queue = what.memory->context->own_queue.get();
  const cl_int status = enqueue(what, queue, ended);
  const cl_int flushed = cl().clFlush(queue);
  return status != CL_SUCCESS ? status : flushed;
}

// A driver that need not be told copies in the application's queue; without a copy, something
// stands for the command.
template <typename Copy>
HandlerResult EnqueueStandIn(Enqueuer& enqueue, const HandOver& what, Copy copy) {
  if (what.image != nullptr) {
    return enqueue.Run([&](cl_command_queue queue, cl_uint waits, const cl_event* list,
                           cl_event* event) { return copy(what, queue, waits, list, event); });
  }
  return enqueue.RunWithoutWork();
}

struct Direction {
  bool acquire;
  cl_int (*enqueue)(const HandOver& what, cl_command_queue queue, cl_event* ended);
  cl_int (*copy)(const HandOver& what, cl_command_queue queue, cl_uint waits, const cl_event* list,
                 cl_event* event);
};
constexpr Direction kAcquire = {true, &EnqueueAcquire, &CopyToImage};
constexpr Direction kRelease = {false, &EnqueueRelease, &CopyFromImage};

// After a failure: what OpenCL still has goes back, the driver's part and then the mutex. The
// client takes nothing of the contents, but may acquire again. Any thread; waits for nothing.
void ReturnMemory(Completions* completions, const std::shared_ptr<MemoryObject>& memory) {
  const ChangeOfHands& hands = *memory->hands;
  const UniqueCl<cl_event> released =
      hands.TakeFromDriver(memory->context->own_queue.get(), memory->handle.get());
  if (!released) {
    hands.ReturnMutex(CL_SUCCESS);
    return;
  }
  completions->Then(released.get(), [memory](cl_int) { memory->hands->ReturnMutex(CL_SUCCESS); },
                    {});
}

// Runs when the command that takes or gives has ended.
std::function<cl_int(cl_int)> AtEnd(Session& session, const HandOver& what,
                                    std::shared_ptr<ChangeOfHands::Taking> taking) {
  return [completions = &session.completions(), memory = what.memory,
          copies = what.image != nullptr, taking](cl_int status) {
    const bool given_up = taking != nullptr && taking->End();
    // It was the driver's acquire that failed, not a copy after it.
    if (status < 0 && taking != nullptr && !copies) memory->hands->driver_has_it = false;
    if (status < 0 || given_up) {
      ReturnMemory(completions, memory);
      return status;
    }
    return taking != nullptr ? status : memory->hands->ReturnMutex(status);
  };
}

// The driver is told when the command may run and not before: one may wait inside
// these calls for what their wait list waits for, and this thread has to go on.
template <typename Command>
HandlerResult Enqueue(Session& session, const Command& cmd, bool semaphore,
                      const Direction& direction) {
  Enqueuer enqueue(session, cmd.on());
  enqueue.Find<MemoryObject>(cmd.mem_id());
  if (cmd.image_id() != 0) enqueue.Find<MemoryObject>(cmd.image_id());
  if (!enqueue.ok()) return enqueue.answer();
  HandOver what;
  what.memory = session.objects().Find<MemoryObject>(cmd.mem_id());
  what.semaphore = semaphore;
  if (what.memory->hands == nullptr) return CL_INVALID_MEM_OBJECT;
  const InShadow* const shadow = what.memory->shadow();
  if (semaphore && (shadow == nullptr || shadow->semaphores == nullptr))
    return CL_INVALID_OPERATION;
  if (semaphore) what.memory->CountOrderIn(&session.counts.semaphored);
  if (cmd.image_id() != 0) {
    what.image = session.objects().Find<MemoryObject>(cmd.image_id());
    what.region = wire::DecodeSize3(cmd.region());
    if (!IsInImage(*what.image, {}, what.region)) return CL_INVALID_VALUE;
  }
  if (what.memory->hands->acquire == nullptr) return EnqueueStandIn(enqueue, what, direction.copy);
  const std::shared_ptr<const ChangeOfHands> hands = what.memory->hands;
  const auto taking = direction.acquire ? std::make_shared<ChangeOfHands::Taking>() : nullptr;
  const auto last = AtEnd(session, what, taking);
  const HandlerResult result =
      enqueue.RunWhenReady([what = std::move(what), tell = direction.enqueue](
                               cl_event* ended) { return Tell(what, tell, ended); },
                           last);
  if (result.status() == CL_SUCCESS) hands->taking = taking;
  return result;
}

// A release that is refused must not leave the memory with OpenCL, now or when an acquire that is
// under way has taken it.
template <typename Command>
HandlerResult ChangeHands(Session& session, const Command& cmd, bool semaphore,
                          const Direction& direction) {
  HandlerResult result = Enqueue(session, cmd, semaphore, direction);
  if (direction.acquire || result.is_violation() || result.status() == CL_SUCCESS) return result;
  const auto memory = session.objects().Find<MemoryObject>(cmd.mem_id());
  if (memory == nullptr || memory->hands == nullptr) return result;
  const std::shared_ptr<ChangeOfHands::Taking> taking = std::move(memory->hands->taking);
  if (taking != nullptr && taking->Abandon()) ReturnMemory(&session.completions(), memory);
  return result;
}

}  // namespace

HandlerResult HandleCreateShadowBuffer(Session& session, const pb::CreateShadowBuffer& cmd,
                                       Call& call) {
  auto memory = std::make_shared<MemoryObject>();
  memory->context = session.objects().Find<ContextObject>(cmd.context_id());
  if (memory->context == nullptr) return CL_INVALID_CONTEXT;
  if (cmd.size() == 0) return CL_INVALID_BUFFER_SIZE;
  if (const cl_int status = session.CheckNew(cmd.mem_id()); status != CL_SUCCESS) return status;
  if (!session.quota().ChargeMemory(cmd.size())) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
  memory->session = &session;
  memory->charged_bytes = cmd.size();
  memory->id = cmd.mem_id();
  memory->size = cmd.size();
  const cl_mem_flags flags =
      cmd.flags() & (CL_MEM_READ_WRITE | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY);
  absl::Status made = MakeShadowBuffer(flags, memory.get());
  pb::ShadowPlacement& placement = *call.answer.mutable_shadow();
  SemaphoreFds semaphores;
  if (made.ok() && cmd.semaphores()) {
    absl::StatusOr<SemaphoreFds> fds = MakeSemaphores(memory.get());
    if (fds.ok()) semaphores = *std::move(fds);
    placement.set_no_semaphores(std::string(fds.status().message()));
  }
  if (made.ok()) made = SendShadow(session, *memory, semaphores);
  if (!made.ok()) {
    placement.set_reason(std::string(made.message()));
    return absl::IsResourceExhausted(made) ? CL_MEM_OBJECT_ALLOCATION_FAILURE
                                           : CL_INVALID_OPERATION;
  }
  memory->CountIn(&session.counts.shadowed);
  placement.set_copies_images(true);
  const InShadow& shadow = *memory->shadow();
  placement.set_semaphores(shadow.semaphores != nullptr);
  placement.set_allocation_bytes(shadow.buffer->memory->allocation_bytes());
  placement.set_device_uuid(Bytes(shadow.buffer->device->device_uuid()));
  placement.set_driver_uuid(Bytes(shadow.buffer->device->driver_uuid()));
  return session.Add(cmd.mem_id(), std::move(memory));
}

HandlerResult HandleEnqueueAcquireShadow(Session& session, const pb::EnqueueAcquireShadow& cmd,
                                         Call&) {
  return ChangeHands(session, cmd, cmd.wait_semaphore(), kAcquire);
}

HandlerResult HandleEnqueueReleaseShadow(Session& session, const pb::EnqueueReleaseShadow& cmd,
                                         Call&) {
  return ChangeHands(session, cmd, cmd.signal_semaphore(), kRelease);
}

}  // namespace sluice::worker
