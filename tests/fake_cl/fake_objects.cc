// SPDX-License-Identifier: Apache-2.0
// Platforms, devices, contexts, queues, events, samplers: making, keeping, dropping.
#include "tests/fake_cl/fake_objects.h"

#include <algorithm>

namespace sluice::fake {
namespace {

std::atomic<int> g_live = 0;

// Drops the last reference's object once nobody refers to it. True if it is to be destroyed.
template <typename T>
bool Unreferenced(T object) {
  return object != nullptr && --object->references == 0;
}

template <typename T>
cl_int Release(T object, cl_int invalid) {
  if (object == nullptr) return invalid;
  {
    const std::lock_guard lock(g_runtime->mu);
    Drop(object);
  }
  g_runtime->Kick();
  return CL_SUCCESS;
}

}  // namespace

Counted::Counted() { ++g_live; }
Counted::~Counted() { --g_live; }

int FakeCl::live_objects() const { return g_live; }

void Drop(cl_context object) {
  if (Unreferenced(object)) delete object;
}
void Drop(cl_command_queue object) {
  if (!Unreferenced(object)) return;
  Drop(object->context);
  delete object;
}
void Drop(cl_mem object) {
  if (!Unreferenced(object)) return;
  for (auto it = object->destructors.rbegin(); it != object->destructors.rend(); ++it) {
    g_runtime->callbacks.push_back([object, function = it->first, data = it->second] {
      function(object, data);  // Only its address is left.
    });
  }
  Drop(object->parent);
  Drop(object->context);
  delete object;
}
void Drop(cl_program object) {
  if (!Unreferenced(object)) return;
  Drop(object->context);
  delete object;
}
void Drop(cl_kernel object) {
  if (!Unreferenced(object)) return;
  Drop(object->program);
  delete object;
}
void Drop(cl_sampler object) {
  if (!Unreferenced(object)) return;
  Drop(object->context);
  delete object;
}
void Drop(cl_event object) {
  if (!Unreferenced(object)) return;
  for (const cl_event dependent : object->dependents) Drop(dependent);
  Drop(object->queue);
  Drop(object->context);
  delete object;
}

cl_int CL_API_CALL fake_clGetPlatformIDs(cl_uint room, cl_platform_id* out, cl_uint* count) {
  if (out != nullptr && room > 0) out[0] = &g_runtime->platform;
  if (count != nullptr) *count = 1;
  return CL_SUCCESS;
}

cl_int CL_API_CALL fake_clGetDeviceIDs(cl_platform_id, cl_device_type, cl_uint room,
                                       cl_device_id* out, cl_uint* count) {
  const cl_device_id all[] = {&g_runtime->cpu, &g_runtime->gpu};
  for (cl_uint i = 0; out != nullptr && i < room && i < 2; ++i) out[i] = all[i];
  if (count != nullptr) *count = 2;
  return CL_SUCCESS;
}

// Any partition makes two halves.
cl_int CL_API_CALL fake_clCreateSubDevices(cl_device_id device,
                                           const cl_device_partition_property* properties,
                                           cl_uint room, cl_device_id* out, cl_uint* count) {
  if (properties == nullptr || properties[0] == 0) return CL_INVALID_VALUE;
  if (out != nullptr && room < 2) return CL_INVALID_VALUE;
  size_t length = 0;
  while (properties[length] != 0) ++length;
  Note("properties", reinterpret_cast<const size_t*>(properties), length);
  for (int i = 0; out != nullptr && i < 2; ++i) {
    out[i] = new _cl_device_id{device->name + " half", device->type, device};
  }
  if (count != nullptr) *count = 2;
  return CL_SUCCESS;
}

cl_int CL_API_CALL fake_clReleaseDevice(cl_device_id device) {
  if (device->parent != nullptr) delete device;
  return CL_SUCCESS;
}

cl_int CL_API_CALL fake_clGetDeviceAndHostTimer(cl_device_id, cl_ulong* device, cl_ulong* host) {
  *device = 1234;
  *host = 5678;
  return CL_SUCCESS;
}

cl_int CL_API_CALL fake_clGetHostTimer(cl_device_id, cl_ulong* host) {
  *host = 5678;
  return CL_SUCCESS;
}

cl_context CL_API_CALL fake_clCreateContext(const cl_context_properties* properties, cl_uint count,
                                            const cl_device_id* devices,
                                            void(CL_CALLBACK* notify)(const char*, const void*,
                                                                      size_t, void*),
                                            void* notify_data, cl_int* status) {
  // As a real driver might: it keeps the pointer beyond the context.
  static auto& kept = *new std::vector<void*>;
  {
    const std::lock_guard lock(g_runtime->mu);
    kept.push_back(notify_data);
    g_runtime->tell_context = [notify, notify_data](const char* message, bool with_data) {
      notify(message, nullptr, 0, with_data ? notify_data : nullptr);
    };
  }
  size_t length = 0;
  while (properties != nullptr && properties[length] != 0) length += 2;
  Note("properties", reinterpret_cast<const size_t*>(properties), length);
  if (count == 0 || devices == nullptr) return Set(status, CL_INVALID_VALUE), nullptr;
  auto* const context = new _cl_context;
  context->devices.assign(devices, devices + count);
  return Set(status, CL_SUCCESS), context;
}

cl_int CL_API_CALL fake_clRetainContext(cl_context context) {
  const std::lock_guard lock(g_runtime->mu);
  Ref(context);
  return CL_SUCCESS;
}

cl_int CL_API_CALL fake_clReleaseContext(cl_context context) {
  return Release(context, CL_INVALID_CONTEXT);
}

cl_int CL_API_CALL fake_clSetContextDestructorCallback(cl_context,
                                                       void(CL_CALLBACK*)(cl_context, void*),
                                                       void*) {
  return CL_SUCCESS;
}

cl_command_queue CL_API_CALL fake_clCreateCommandQueue(cl_context context, cl_device_id device,
                                                       cl_command_queue_properties properties,
                                                       cl_int* status) {
  constexpr cl_command_queue_properties kKnown = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE |
                                                 CL_QUEUE_PROFILING_ENABLE | CL_QUEUE_ON_DEVICE |
                                                 CL_QUEUE_ON_DEVICE_DEFAULT;
  if ((properties & ~kKnown) != 0) return Set(status, CL_INVALID_VALUE), nullptr;
  const auto& devices = context->devices;
  if (std::find(devices.begin(), devices.end(), device) == devices.end()) {
    return Set(status, CL_INVALID_DEVICE), nullptr;
  }
  const std::lock_guard lock(g_runtime->mu);
  auto* const queue = new _cl_command_queue;
  queue->context = Ref(context);
  queue->device = device;
  queue->properties = properties;
  return Set(status, CL_SUCCESS), queue;
}

cl_command_queue CL_API_CALL
fake_clCreateCommandQueueWithProperties(cl_context context, cl_device_id device,
                                        const cl_queue_properties* properties, cl_int* status) {
  cl_command_queue_properties flags = 0;
  size_t length = 0;
  for (; properties != nullptr && properties[length] != 0; length += 2) {
    if (properties[length] == CL_QUEUE_PROPERTIES) flags = properties[length + 1];
  }
  Note("properties", reinterpret_cast<const size_t*>(properties), length);
  return fake_clCreateCommandQueue(context, device, flags, status);
}

cl_int CL_API_CALL fake_clReleaseCommandQueue(cl_command_queue queue) {
  return Release(queue, CL_INVALID_COMMAND_QUEUE);
}

cl_int CL_API_CALL fake_clSetDefaultDeviceCommandQueue(cl_context, cl_device_id, cl_command_queue) {
  return CL_SUCCESS;
}

cl_int CL_API_CALL fake_clFlush(cl_command_queue) { return CL_SUCCESS; }

cl_int CL_API_CALL fake_clFinish(cl_command_queue queue) {
  std::unique_lock lock(g_runtime->mu);
  // With commands held in kInline nobody else would ever end them.
  if (g_runtime->execution == Execution::kInline) return CL_SUCCESS;
  g_runtime->changed.wait(lock, [&] { return queue->pending.empty(); });
  return CL_SUCCESS;
}

cl_sampler CL_API_CALL fake_clCreateSampler(cl_context context, cl_bool, cl_addressing_mode,
                                            cl_filter_mode, cl_int* status) {
  const std::lock_guard lock(g_runtime->mu);
  auto* const sampler = new _cl_sampler;
  sampler->context = Ref(context);
  return Set(status, CL_SUCCESS), sampler;
}

cl_sampler CL_API_CALL fake_clCreateSamplerWithProperties(cl_context context,
                                                          const cl_sampler_properties* properties,
                                                          cl_int* status) {
  size_t length = 0;
  while (properties != nullptr && properties[length] != 0) length += 2;
  Note("properties", reinterpret_cast<const size_t*>(properties), length);
  return fake_clCreateSampler(context, CL_TRUE, 0, 0, status);
}

cl_int CL_API_CALL fake_clReleaseSampler(cl_sampler sampler) {
  return Release(sampler, CL_INVALID_SAMPLER);
}

cl_event CL_API_CALL fake_clCreateUserEvent(cl_context context, cl_int* status) {
  const std::lock_guard lock(g_runtime->mu);
  auto* const event = new _cl_event;
  event->context = Ref(context);
  event->type = CL_COMMAND_USER;
  event->status = CL_SUBMITTED;
  return Set(status, CL_SUCCESS), event;
}

cl_int CL_API_CALL fake_clSetUserEventStatus(cl_event event, cl_int status) {
  {
    const std::lock_guard lock(g_runtime->mu);
    if (event->type != CL_COMMAND_USER) return CL_INVALID_EVENT;
    if (status > CL_COMPLETE) return CL_INVALID_VALUE;
    if (event->status <= CL_COMPLETE) return CL_INVALID_OPERATION;
    g_runtime->End(event, status, /*by_dependency=*/false);
  }
  g_runtime->Kick();
  return CL_SUCCESS;
}

cl_int CL_API_CALL fake_clRetainEvent(cl_event event) {
  const std::lock_guard lock(g_runtime->mu);
  Ref(event);
  return CL_SUCCESS;
}

cl_int CL_API_CALL fake_clReleaseEvent(cl_event event) { return Release(event, CL_INVALID_EVENT); }

cl_int CL_API_CALL fake_clSetEventCallback(cl_event event, cl_int,
                                           void(CL_CALLBACK* function)(cl_event, cl_int, void*),
                                           void* data) {
  bool now = false;
  cl_int status = CL_COMPLETE;
  {
    const std::lock_guard lock(g_runtime->mu);
    if (!g_runtime->has_callbacks) return CL_INVALID_OPERATION;
    status = event->status;
    now = status <= CL_COMPLETE && !g_runtime->hold_callbacks;
    if (status > CL_COMPLETE) {
      event->callbacks.push_back({function, data});
    } else if (!now) {
      g_runtime->callbacks.push_back([=] { function(event, status, data); });
    }
  }
  // As PoCL does: an event that has ended calls back from inside the registration.
  if (now) function(event, status, data);
  return CL_SUCCESS;
}

cl_int CL_API_CALL fake_clWaitForEvents(cl_uint count, const cl_event* list) {
  std::unique_lock lock(g_runtime->mu);
  g_runtime->changed.wait(lock, [&] {
    return std::all_of(list, list + count, [](cl_event event) { return event->status <= 0; });
  });
  return CL_SUCCESS;
}

}  // namespace sluice::fake
