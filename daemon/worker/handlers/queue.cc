// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <memory>

#include "daemon/worker/handlers/handlers.h"
#include "daemon/worker/queues/in_order_queue.h"
#include "daemon/worker/queues/out_of_order_queue.h"
#include "daemon/worker/session.h"

namespace sluice::worker {
namespace {

// One more, as long as the result lives.
std::shared_ptr<void> Count(const std::shared_ptr<std::atomic<int>>& all) {
  all->fetch_add(1, std::memory_order_relaxed);
  return {all.get(), [all](void*) { all->fetch_sub(1, std::memory_order_relaxed); }};
}

}  // namespace

HandlerResult HandleCreateCommandQueue(Session& session, const pb::CreateCommandQueue& cmd, Call&) {
  auto context = session.objects().Find<ContextObject>(cmd.context_id());
  if (context == nullptr) return CL_INVALID_CONTEXT;
  auto device = session.objects().Find<DeviceObject>(cmd.device_id());
  if (device == nullptr || !context->Has(*device)) return CL_INVALID_DEVICE;
  if (cmd.properties_size() % 2 != 0)
    return absl::InvalidArgumentError("queue property without a value");
  std::vector<cl_queue_properties> properties(cmd.properties().begin(), cmd.properties().end());
  QueueHints hints;
  cl_int status = TakeQueueHints(device->handle, &properties, &hints);
  if (status != CL_SUCCESS) return status;
  cl_command_queue_properties flags = 0;
  bool only_flags = true;
  for (size_t i = 0; i < properties.size(); i += 2) {
    if (properties[i] == CL_QUEUE_PROPERTIES) {
      flags = properties[i + 1];
    } else {
      only_flags = false;
    }
  }
  properties.push_back(0);
  UniqueCl<cl_command_queue> handle;
  // The older call where it says the same: a loader of OpenCL 1.2 has no other.
  if (only_flags && (flags & CL_QUEUE_ON_DEVICE) == 0) {
    handle.reset(cl().clCreateCommandQueue(context->handle.get(), device->handle, flags, &status));
  } else if (cl().clCreateCommandQueueWithProperties != nullptr) {
    handle.reset(cl().clCreateCommandQueueWithProperties(context->handle.get(), device->handle,
                                                         properties.data(), &status));
  } else {
    status = CL_INVALID_QUEUE_PROPERTIES;
  }
  if (status != CL_SUCCESS) return status;
  std::shared_ptr<QueueObject> queue;
  if ((flags & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0) {
    queue = std::make_shared<InOrderQueue>(&session.quota());
  } else {
    queue = std::make_shared<OutOfOrderQueue>(&session.quota());
  }
  queue->counted = Count(context->queues);
  queue->id = cmd.queue_id();
  queue->handle = std::move(handle);
  queue->context = std::move(context);
  queue->device = std::move(device);
  queue->profiling = (flags & CL_QUEUE_PROFILING_ENABLE) != 0;
  queue->hints = hints;
  const cl_int added = session.Add(cmd.queue_id(), std::move(queue));
  // A pool's process is not this session's alone.
  if (added == CL_SUCCESS && session.options().pool == nullptr) session.hints().Add(hints);
  return added;
}

HandlerResult HandleFlush(Session& session, const pb::Flush& cmd, Call&) {
  QueueObject* const queue = session.objects().Peek<QueueObject>(cmd.queue_id());
  if (queue == nullptr) return CL_INVALID_COMMAND_QUEUE;
  return cl().clFlush(queue->handle.get());
}

HandlerResult HandleFinish(Session& session, const pb::Finish& cmd, Call&) {
  if (cmd.event_id() == 0) return absl::InvalidArgumentError("finish without an event");
  const auto queue = session.objects().Find<QueueObject>(cmd.queue_id());
  if (queue == nullptr) return CL_INVALID_COMMAND_QUEUE;
  if (!session.MayAccept()) return CL_OUT_OF_RESOURCES;
  const auto share = std::make_shared<CommandShare>(queue->in_flight->Accept(/*after_all=*/true));
  const cl_int status = WhenAllEnded(
      session, queue, [owner = &session, event_id = cmd.event_id(), share](cl_int finished) {
        owner->printf().Drain();
        share->End(/*all_before=*/true);
        owner->completions().SendCompletion(event_id, finished);
      });
  if (status != CL_SUCCESS) share->End(/*all_before=*/false);
  return status;
}

HandlerResult HandleSetDefaultDeviceCommandQueue(Session& session,
                                                 const pb::SetDefaultDeviceCommandQueue& cmd,
                                                 Call&) {
  ContextObject* const context = session.objects().Peek<ContextObject>(cmd.context_id());
  if (context == nullptr) return CL_INVALID_CONTEXT;
  DeviceObject* const device = session.objects().Peek<DeviceObject>(cmd.device_id());
  if (device == nullptr || !context->Has(*device)) return CL_INVALID_DEVICE;
  QueueObject* const queue = session.objects().Peek<QueueObject>(cmd.queue_id());
  if (queue == nullptr || queue->context.get() != context) return CL_INVALID_COMMAND_QUEUE;
  if (cl().clSetDefaultDeviceCommandQueue == nullptr) return CL_INVALID_OPERATION;
  return cl().clSetDefaultDeviceCommandQueue(context->handle.get(), device->handle,
                                             queue->handle.get());
}

}  // namespace sluice::worker
