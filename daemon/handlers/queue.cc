// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "daemon/enqueuer.h"
#include "daemon/handlers/handlers.h"

namespace sluice {

HandlerResult HandleCreateCommandQueue(Session& session, const pb::CreateCommandQueue& cmd, Call&) {
  auto context = session.objects().Find<ContextObject>(cmd.context_id());
  if (context == nullptr) return CL_INVALID_CONTEXT;
  auto device = session.objects().Find<DeviceObject>(cmd.device_id());
  if (device == nullptr) return CL_INVALID_DEVICE;
  if (cmd.properties_size() % 2 != 0)
    return absl::InvalidArgumentError("queue property without a value");
  auto queue = std::make_shared<QueueObject>();
  std::vector<cl_queue_properties> properties(cmd.properties().begin(), cmd.properties().end());
  cl_int status = TakeQueueHints(device->handle, &properties, &queue->hints);
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
  // The older call where it says the same: a loader of OpenCL 1.2 has no other.
  if (only_flags && (flags & CL_QUEUE_ON_DEVICE) == 0) {
    queue->handle.reset(
        cl().clCreateCommandQueue(context->handle.get(), device->handle, flags, &status));
  } else if (cl().clCreateCommandQueueWithProperties != nullptr) {
    queue->handle.reset(cl().clCreateCommandQueueWithProperties(
        context->handle.get(), device->handle, properties.data(), &status));
  } else {
    status = CL_INVALID_QUEUE_PROPERTIES;
  }
  if (status != CL_SUCCESS) return status;
  queue->id = cmd.queue_id();
  queue->context = std::move(context);
  queue->device = std::move(device);
  queue->in_order = (flags & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0;
  queue->lane = Completions::MakeLane(queue->in_order);
  queue->in_flight = std::make_shared<QueueInFlight>(&session.quota(), queue->in_order);
  queue->profiling = (flags & CL_QUEUE_PROFILING_ENABLE) != 0;
  const QueueHints hints = queue->hints;
  const cl_int added = session.Add(cmd.queue_id(), std::move(queue));
  if (added == CL_SUCCESS) session.hints().Add(hints);
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
  UniqueCl<cl_event> last;
  if (!session.MayAccept()) return CL_OUT_OF_RESOURCES;
  if (const cl_int status = Enqueuer::LastEvent(session, *queue, &last); status != CL_SUCCESS)
    return status;
  const auto share = std::make_shared<CommandShare>(queue->in_flight->Accept(/*after_all=*/true));
  const auto finished = [owner = &session, event_id = cmd.event_id(), share] {
    owner->printf().Drain();
    share->End(/*all_before=*/true);
    owner->completions().SendCompletion(event_id, CL_COMPLETE);
  };
  if (!last ||
      (StatusOf(last.get()) == CL_COMPLETE && session.completions().AllDelivered(queue->lane))) {
    finished();
    return CL_SUCCESS;
  }
  session.Touch(queue.get());
  const auto on_last = [finished, queue, owner = &session](cl_int status) {
    if (status == CL_COMPLETE) return finished();
    // It failed, perhaps before others of the queue have ended: the driver knows when they have.
    std::thread([finished, queue, owner] {
      cl().clFinish(queue->handle.get());
      owner->completions().SweepEnded();
      finished();
    }).detach();
  };
  session.completions().Then(last.get(), on_last, {queue->lane, /*after_all=*/true});
  return CL_SUCCESS;
}

HandlerResult HandleSetDefaultDeviceCommandQueue(Session& session,
                                                 const pb::SetDefaultDeviceCommandQueue& cmd,
                                                 Call&) {
  ContextObject* const context = session.objects().Peek<ContextObject>(cmd.context_id());
  if (context == nullptr) return CL_INVALID_CONTEXT;
  DeviceObject* const device = session.objects().Peek<DeviceObject>(cmd.device_id());
  if (device == nullptr) return CL_INVALID_DEVICE;
  QueueObject* const queue = session.objects().Peek<QueueObject>(cmd.queue_id());
  if (queue == nullptr) return CL_INVALID_COMMAND_QUEUE;
  if (cl().clSetDefaultDeviceCommandQueue == nullptr) return CL_INVALID_OPERATION;
  return cl().clSetDefaultDeviceCommandQueue(context->handle.get(), device->handle,
                                             queue->handle.get());
}

}  // namespace sluice
