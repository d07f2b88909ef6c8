// SPDX-License-Identifier: Apache-2.0
#include "broker/os/local_socket.h"
#include "daemon/change_of_hands.h"
#include "daemon/enqueuer.h"
#include "daemon/handlers/handlers.h"
#include "daemon/shadows.h"
#include "proto/handle_messages.h"
#include "proto/status_macros.h"

namespace sluice {
namespace {

std::string Bytes(const DeviceUuid& uuid) { return std::string(uuid.begin(), uuid.end()); }

absl::Status SendShadow(Session& session, const MemoryObject& memory) {
  ASSIGN_OR_RETURN(const UniqueFd fd, memory.shadow->memory->Export());
  HandleMessage message = {};
  message.magic = kHandleMagic;
  message.type = HandleMessageType::kShadowMemory;
  message.size = memory.shadow->memory->allocation_bytes();
  message.address = memory.id;
  const int descriptor = fd.get();
  return SendMessage(session.handle_channel(), &message, sizeof(message), &descriptor, 1);
}

// Acquire and release are alike: the driver is told, or, if it need not be, something stands for
// the command. Told when the command may run and not before: NVIDIA's driver (580.159.04) waits
// inside these calls for what their wait list waits for, and this thread has to go on. On the
// context's own queue, since nothing that the application enqueued may come between.
HandlerResult ChangeHands(Session& session, const pb::Enqueue& on, uint64_t mem_id, bool acquire) {
  Enqueuer enqueue(session, on);
  enqueue.Find<MemoryObject>(mem_id);
  if (!enqueue.ok()) return enqueue.answer();
  const auto memory = session.objects().Find<MemoryObject>(mem_id);
  if (memory->hands == nullptr) return CL_INVALID_MEM_OBJECT;
  const auto tell = acquire ? memory->hands->acquire : memory->hands->release;
  if (tell != nullptr) {
    const auto start = [memory, tell, acquire](cl_event* ended) {
      if (acquire) {
        if (const cl_int taken = memory->hands->TakeMutex(); taken != CL_SUCCESS) return taken;
      }
      const cl_command_queue queue = memory->context->own_queue.get();
      const cl_mem handle = memory->handle.get();
      const cl_int status = tell(queue, 1, &handle, 0, nullptr, ended);
      return status == CL_SUCCESS ? cl().clFlush(queue) : status;
    };
    // A release gives the mutex back even if it fails: the client then takes nothing of the
    // contents, but may acquire again.
    const auto last = [memory, acquire](cl_int status) {
      return acquire && status >= 0 ? status : memory->hands->GiveMutexBack(status);
    };
    return enqueue.RunWhenReady(start, last);
  }
  const bool done = enqueue.HasWaited() && !enqueue.queue().in_order;
  if (done || enqueue.IsIdle()) return enqueue.CompleteNow({});
  enqueue.SetAfterAll();
  return enqueue.Run(
      [](cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
        return cl().clEnqueueMarkerWithWaitList(queue, waits, list, event);
      });
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
  if (made.ok()) made = SendShadow(session, *memory);
  pb::ShadowPlacement& placement = *call.answer.mutable_shadow();
  if (!made.ok()) {
    placement.set_reason(std::string(made.message()));
    return absl::IsResourceExhausted(made) ? CL_MEM_OBJECT_ALLOCATION_FAILURE
                                           : CL_INVALID_OPERATION;
  }
  memory->CountIn(&session.shadowed_count);
  placement.set_allocation_bytes(memory->shadow->memory->allocation_bytes());
  placement.set_device_uuid(Bytes(memory->shadow->device->device_uuid()));
  placement.set_driver_uuid(Bytes(memory->shadow->device->driver_uuid()));
  return session.Add(cmd.mem_id(), std::move(memory));
}

HandlerResult HandleEnqueueAcquireShadow(Session& session, const pb::EnqueueAcquireShadow& cmd,
                                         Call&) {
  return ChangeHands(session, cmd.on(), cmd.mem_id(), /*acquire=*/true);
}

HandlerResult HandleEnqueueReleaseShadow(Session& session, const pb::EnqueueReleaseShadow& cmd,
                                         Call&) {
  return ChangeHands(session, cmd.on(), cmd.mem_id(), /*acquire=*/false);
}

}  // namespace sluice
