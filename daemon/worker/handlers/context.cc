// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/base/log.h"
#include "daemon/worker/device_list.h"
#include "daemon/worker/handlers/handlers.h"
#include "daemon/worker/info_reader.h"
#include "daemon/worker/memory/host_memory.h"
#include "daemon/worker/own_questions.h"
#include "daemon/worker/pool/pool_parts.h"
#include "daemon/worker/queues/enqueuer.h"

namespace sluice::worker {
namespace {

// All that a driver's callback may touch. A context's lives for ever, since a driver may call late;
// a memory object's goes with its one call.
struct Watcher {
  Session* session;
  uint64_t id;
};

struct MemoryWatcher {
  Watcher watcher;
  std::shared_ptr<ContextObject::End> end_of_context;  // Comes after.
};

void CL_CALLBACK OnNotify(const char* message, const void* private_info, size_t bytes, void* data) {
  if (ScopedOwnQuestions::Here()) return;
  const auto* watcher = static_cast<const Watcher*>(data);
  // They may come without the pointer, against section 4.4: then nobody knows of which context.
  if (watcher == nullptr) {
    Log(LogLevel::kWarning, "worker", "the driver tells of an error, and of no context",
        {{"message", message != nullptr ? message : ""}});
    return;
  }
  pb::Reply reply;
  pb::ContextNotify& notify = *reply.mutable_context_notify();
  notify.set_context_id(watcher->id);
  if (message != nullptr) notify.set_message(message);
  if (private_info != nullptr) notify.set_private_info(private_info, bytes);
  watcher->session->replies().Send(reply, wire::Wake::kUrgent);
}

// Of the flags and types that programs ask for, as most of them do.
void DescribeImageFormats(const ContextObject& context, pb::ContextPlacement* placement) {
  constexpr cl_mem_flags kFlags[] = {CL_MEM_READ_WRITE, CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY,
                                     CL_MEM_KERNEL_READ_AND_WRITE};
  constexpr cl_mem_object_type kTypes[] = {
      CL_MEM_OBJECT_IMAGE1D, CL_MEM_OBJECT_IMAGE1D_BUFFER, CL_MEM_OBJECT_IMAGE1D_ARRAY,
      CL_MEM_OBJECT_IMAGE2D, CL_MEM_OBJECT_IMAGE2D_ARRAY,  CL_MEM_OBJECT_IMAGE3D};
  const ScopedOwnQuestions own_questions;
  const auto has_images = [](const auto& device) {
    cl_bool images = CL_FALSE;
    cl().clGetDeviceInfo(device->handle, CL_DEVICE_IMAGE_SUPPORT, sizeof(images), &images, nullptr);
    return images == CL_TRUE;
  };
  if (!std::any_of(context.devices.begin(), context.devices.end(), has_images)) return;
  for (const cl_mem_flags flags : kFlags) {
    for (const cl_mem_object_type type : kTypes) {
      std::string formats;
      if (ReadImageFormats(context.handle.get(), flags, type, &formats) != CL_SUCCESS) continue;
      pb::SupportedImageFormats& entry = *placement->add_image_formats();
      entry.set_flags(flags);
      entry.set_image_type(type);
      entry.set_formats(std::move(formats));
    }
  }
}

void SendDestroyed(const Watcher& watcher) {
  pb::Reply reply;
  reply.mutable_destroyed()->set_id(watcher.id);
  watcher.session->replies().Send(reply, wire::Wake::kUrgent);
}

void CL_CALLBACK OnMemoryDestroyed(cl_mem, void* data) {
  std::unique_ptr<const MemoryWatcher> memory(static_cast<const MemoryWatcher*>(data));
  SendDestroyed(memory->watcher);
  Session* const session = memory->watcher.session;
  memory.reset();  // May be the last to hold the context's end, which tells as well.
  session->watched_by_driver.fetch_sub(1, std::memory_order_release);
}

// Nobody can set it any more: what waits for it would wait for ever, its queues with it, as section
// 5.11 (clReleaseEvent) warns; here it fails. It is also what a test did that hung on an H200
// (driver 580), for a reason that was not found, and no longer does.
void EndForgottenUserEvent(Session& session, const EventObject& event) {
  if (!event.is_user || !event.handle || StatusOf(event.handle.get()) <= CL_COMPLETE) return;
  cl().clSetUserEventStatus(event.handle.get(), CL_INVALID_EVENT);
  session.completions().SweepFailed();
}

void KeepUntilAllEnded(Session& session, const std::shared_ptr<QueueObject>& queue,
                       std::shared_ptr<MemoryObject> memory) {
  WhenAllEnded(session, queue, [memory = std::move(memory)](cl_int) {});
}

// Section 5.5.1: the callback comes when the commands that use the object have finished. A driver
// that calls nobody back (Wine's) does not say when that is either: the object lives as long as
// anything that was enqueued before its release.
void KeepWhileUsed(Session& session, const std::shared_ptr<MemoryObject>& memory) {
  session.objects().ForEach<QueueObject>([&](const QueueObject& queue) {
    if (queue.context == memory->context)
      KeepUntilAllEnded(session, session.objects().Find<QueueObject>(queue.id), memory);
  });
}

void WatchWithoutDriver(const Watcher& watcher, const std::shared_ptr<MemoryObject>& memory) {
  memory->on_destroyed = [watcher] { SendDestroyed(watcher); };
  auto& watched = memory->context->watched;
  std::erase_if(watched, [](const auto& one) { return one.expired(); });
  watched.push_back(memory);
}

// Nothing of it may be seen by another session: not where devices have queues of their own, one of
// which is the context's default.
bool MayShareContext(const ContextObject& context, const pb::CreateContext& cmd) {
  if (cmd.properties_size() != 0) return false;
  return std::all_of(context.devices.begin(), context.devices.end(), [](const auto& device) {
    cl_uint queues = 0;
    const bool asked = cl().clGetDeviceInfo(device->handle, CL_DEVICE_MAX_ON_DEVICE_QUEUES,
                                            sizeof(queues), &queues, nullptr) == CL_SUCCESS;
    return !device->sub_device && (!asked || queues == 0);
  });
}

// A context of the driver's: in a pool its sessions' one, if they may share it.
cl_int MakeHandle(Session& session, const pb::CreateContext& cmd,
                  const std::vector<cl_device_id>& handles, ContextObject* context) {
  PoolParts* const pool = session.options().pool;
  cl_int status = CL_SUCCESS;
  if (pool != nullptr && MayShareContext(*context, cmd)) {
    context->handle =
        pool->contexts.Get(context->devices[0]->platform, handles, &context->queues, &status);
    return status;
  }
  std::vector<cl_context_properties> properties = {
      CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(context->devices[0]->platform)};
  for (const uint64_t value : cmd.properties())
    properties.push_back(static_cast<cl_context_properties>(value));
  properties.push_back(0);
  // A driver may call after the session's end, which in a pool is not the process's.
  std::unique_ptr<Watcher> watcher;
  if (pool == nullptr) watcher = std::make_unique<Watcher>(Watcher{&session, cmd.context_id()});
  context->handle.reset(cl().clCreateContext(properties.data(),
                                             static_cast<cl_uint>(handles.size()), handles.data(),
                                             &OnNotify, watcher.get(), &status));
  if (status == CL_SUCCESS) (void)watcher.release();
  return status;
}

}  // namespace

HandlerResult HandleCreateContext(Session& session, const pb::CreateContext& cmd, Call& call) {
  auto context = std::make_shared<ContextObject>();
  std::vector<cl_device_id> handles;
  for (const uint64_t id : cmd.device_ids()) {
    auto device = session.objects().Find<DeviceObject>(id);
    if (device == nullptr) {
      // The client knows it of a probe: another worker may have it again.
      session.TellOfLostDevice("a device that clients know is not there");
      call.answer.set_session_is_spent(true);
      return CL_INVALID_DEVICE;
    }
    // A driver takes another driver's handle for one of its own.
    if (!handles.empty() && device->platform != context->devices[0]->platform) {
      return CL_INVALID_DEVICE;
    }
    handles.push_back(device->handle);
    context->devices.push_back(std::move(device));
  }
  if (handles.empty()) return CL_INVALID_VALUE;
  if (cmd.properties_size() % 2 != 0) {
    return absl::InvalidArgumentError("context property without a value");
  }
  PoolParts* const pool = session.options().pool;
  // An honest client asks for a worker of its own then (proto/broker_messages.h).
  if (pool != nullptr && !pool->takes_cpu_devices &&
      std::any_of(context->devices.begin(), context->devices.end(),
                  [](const auto& device) { return device->is_cpu; })) {
    return CL_DEVICE_NOT_AVAILABLE;
  }
  context->id = cmd.context_id();
  cl_int status = MakeHandle(session, cmd, handles, context.get());
  if (status != CL_SUCCESS) {
    if (pool != nullptr) pool->on_failed();
    const bool may_be_dead =
        std::any_of(context->devices.begin(), context->devices.end(),
                    [](const auto& device) { return device->quirks.faults_end_contexts; });
    call.answer.set_session_is_spent(status == CL_DEVICE_NOT_AVAILABLE ||
                                     (may_be_dead && session.completions().any_failed()));
    // Not for wrong arguments.
    if (status > CL_INVALID_VALUE)
      session.TellOfLostDevice(absl::StrCat("clCreateContext has failed with ", status));
    return status;
  }
  context->own_queue.reset(
      cl().clCreateCommandQueue(context->handle.get(), handles[0], 0, &status));
  if (status != CL_SUCCESS) return status;
  bool overtakes = false;
  bool images_of_imports = true;
  for (const auto& device : context->devices) {
    if (device->quirks.calls_back_late) session.completions().set_polls();
    session.turns().Use(device->key, device->quirks.switches_slowly, device->is_cpu);
    overtakes |= device->quirks.overtakes;
    images_of_imports &= !device->quirks.fails_images_of_imports;
  }
  context->buffers_in_heap =
      std::all_of(context->devices.begin(), context->devices.end(),
                  [](const std::shared_ptr<DeviceObject>& device) { return device->is_cpu; }) &&
      BuffersWorkInHostMemory(*context);
  context->pins =
      std::none_of(context->devices.begin(), context->devices.end(),
                   [](const std::shared_ptr<DeviceObject>& device) { return device->is_cpu; });
  pb::ContextPlacement& placement = *call.answer.mutable_context();
  placement.set_buffers_in_heap(context->buffers_in_heap);
  placement.set_overtakes(overtakes);
  placement.set_images_of_imports(images_of_imports);
  placement.set_takes_unasked(!session.options().sync);
  DescribeImageFormats(*context, &placement);
  session.NameDevice(DeviceName(handles[0]));
  const cl_int added = session.Add(cmd.context_id(), std::move(context));
  if (added == CL_SUCCESS) session.counts.contexts.fetch_add(1, std::memory_order_relaxed);
  return added;
}

HandlerResult HandleReleaseObject(Session& session, const pb::ReleaseObject& cmd, Call&) {
  ObjectTable& objects = session.objects();
  bool held_by_events = false;
  if (const auto queue = objects.Find<QueueObject>(cmd.id()); queue != nullptr) {
    // Its commands outlive it.
    for (const auto& watched : queue->context->watched) {
      if (auto memory = watched.lock()) KeepUntilAllEnded(session, queue, std::move(memory));
    }
    // Memory that its commands carry is kept until they have ended.
    if (queue->Mark(session) != CL_SUCCESS) cl().clFinish(queue->handle.get());
    cl().clFlush(queue->handle.get());  // Section 5.1: a release flushes.
    session.Forget(queue.get());
    if (session.options().pool == nullptr) session.hints().Remove(queue->hints);
    held_by_events = true;
  }
  if (const auto context = objects.Find<ContextObject>(cmd.id()); context != nullptr) {
    session.counts.contexts.fetch_sub(1, std::memory_order_relaxed);
    held_by_events = true;
  }
  if (const auto event = objects.Find<EventObject>(cmd.id()); event != nullptr) {
    EndForgottenUserEvent(session, *event);
  }
  // The context's list is empty where the driver tells.
  if (const auto memory = objects.Find<MemoryObject>(cmd.id());
      memory != nullptr && memory->on_destroyed && !memory->context->watched.empty()) {
    PayZeros(memory->context.get());  // Another thread may end it.
    KeepWhileUsed(session, memory);
  }
  objects.Erase(cmd.id());
  if (held_by_events) session.kept_events().Sweep();
  session.counts.objects.store(objects.size(), std::memory_order_relaxed);
  return CL_SUCCESS;
}

HandlerResult HandleWatchDestruction(Session& session, const pb::WatchDestruction& cmd, Call&) {
  const Watcher watcher{&session, cmd.id()};
  if (const auto memory = session.objects().Find<MemoryObject>(cmd.id()); memory != nullptr) {
    if (memory->on_destroyed) return CL_SUCCESS;  // It is watched: each call would cost a callback.
    auto drivers = std::make_unique<MemoryWatcher>(MemoryWatcher{watcher, memory->context->end});
    session.watched_by_driver.fetch_add(1, std::memory_order_relaxed);
    if (cl().clSetMemObjectDestructorCallback(memory->handle.get(), &OnMemoryDestroyed,
                                              drivers.get()) == CL_SUCCESS) {
      (void)drivers.release();
      memory->on_destroyed = [] {};  // The driver tells; this says that it was asked.
    } else {
      session.watched_by_driver.fetch_sub(1, std::memory_order_relaxed);
      WatchWithoutDriver(watcher, memory);
    }
    return CL_SUCCESS;
  }
  if (FailedObject* const failed = session.objects().Peek<FailedObject>(cmd.id());
      failed != nullptr) {
    failed->on_released = [watcher] { SendDestroyed(watcher); };
    return CL_SUCCESS;
  }
  if (ContextObject* const context = session.objects().Peek<ContextObject>(cmd.id());
      context != nullptr) {
    // Every object of the context keeps it, here as in section 4.4.
    context->end->tell = [watcher] { SendDestroyed(watcher); };
    return CL_SUCCESS;
  }
  return CL_INVALID_VALUE;
}

}  // namespace sluice::worker
