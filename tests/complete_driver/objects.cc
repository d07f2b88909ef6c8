// SPDX-License-Identifier: Apache-2.0
// Contexts that ask for cleared memory, of which PoCL is not told. Pipes, which are buffers of
// PoCL's over memory of ours. Queues on the device, which are PoCL's host queues that nothing is
// enqueued to.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "tests/complete_driver/complete_driver.h"

namespace sluice::complete_driver {
namespace {

// As kernels see it (kPipeSource in source.cc).
struct PipeHead {
  cl_uint packet_bytes;
  cl_uint max_packets;
  cl_uint written;
  cl_uint read;
  cl_uint at;  // Of the byte behind, for the alignment of packets.
  cl_uint unused[27];
};
static_assert(sizeof(PipeHead) == 128);

struct DeviceQueue {
  cl_context context = nullptr;
  cl_device_id device = nullptr;
  cl_uint bytes = 0;
  cl_command_queue_properties flags = 0;
};

std::mutex g_objects_mu;
std::map<cl_mem, PipeHead*> g_pipes;
std::map<cl_command_queue, DeviceQueue> g_queues;
std::map<std::pair<cl_context, cl_device_id>, cl_command_queue> g_default_queues;

// The bits are told on stderr, so that a test sees that they have come through.
cl_context CL_API_CALL CreateContext(
    const cl_context_properties* properties, cl_uint count, const cl_device_id* devices,
    void(CL_CALLBACK* notify)(const char*, const void*, size_t, void*), void* data, cl_int* error) {
  if (properties == nullptr)
    return Pocl().clCreateContext(properties, count, devices, notify, data, error);
  std::vector<cl_context_properties> kept;
  for (; properties[0] != 0; properties += 2) {
    if (properties[0] == CL_CONTEXT_MEMORY_INITIALIZE_KHR) {
      std::fprintf(stderr, "complete_driver: CL_CONTEXT_MEMORY_INITIALIZE_KHR %d\n",
                   static_cast<int>(properties[1]));
    } else {
      kept.insert(kept.end(), properties, properties + 2);
    }
  }
  kept.push_back(0);
  return Pocl().clCreateContext(kept.data(), count, devices, notify, data, error);
}

PipeHead* FindPipe(cl_mem memory) {
  std::lock_guard<std::mutex> lock(g_objects_mu);
  const auto found = g_pipes.find(memory);
  return found == g_pipes.end() ? nullptr : found->second;
}

void CL_CALLBACK ForgetPipe(cl_mem memory, void* head) {
  std::lock_guard<std::mutex> lock(g_objects_mu);
  g_pipes.erase(memory);
  std::free(head);
}

cl_mem CL_API_CALL CreatePipe(cl_context context, cl_mem_flags flags, cl_uint packet_bytes,
                              cl_uint max_packets, const cl_pipe_properties* properties,
                              cl_int* error) {
  const auto refuse = [error](cl_int code) { return static_cast<cl_mem>(Refuse(code, error)); };
  if (context == nullptr) return refuse(CL_INVALID_CONTEXT);
  // Section 5.4.1.
  if ((flags & ~cl_mem_flags{CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS}) != 0 ||
      properties != nullptr) {
    return refuse(CL_INVALID_VALUE);
  }
  if (packet_bytes == 0 || packet_bytes > kMaxPacketBytes || max_packets == 0)
    return refuse(CL_INVALID_PIPE_SIZE);
  const size_t bytes = sizeof(PipeHead) + size_t{packet_bytes} * max_packets;
  if (bytes > size_t{1} << 30) return refuse(CL_OUT_OF_RESOURCES);
  void* memory = nullptr;
  if (::posix_memalign(&memory, 4096, bytes) != 0) return refuse(CL_OUT_OF_HOST_MEMORY);
  auto* const head = static_cast<PipeHead*>(memory);
  *head = PipeHead{packet_bytes, max_packets, 0, 0, sizeof(PipeHead), {}};
  const cl_mem pipe =
      Pocl().clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, memory, error);
  if (pipe == nullptr) {
    std::free(memory);
    return nullptr;
  }
  std::lock_guard<std::mutex> lock(g_objects_mu);
  g_pipes[pipe] = head;
  Pocl().clSetMemObjectDestructorCallback(pipe, &ForgetPipe, head);
  return pipe;
}

cl_int CL_API_CALL GetPipeInfo(cl_mem pipe, cl_pipe_info param, size_t room, void* out,
                               size_t* bytes_out) {
  const PipeHead* const head = FindPipe(pipe);
  if (head == nullptr) return CL_INVALID_MEM_OBJECT;
  switch (param) {
    case CL_PIPE_PACKET_SIZE:
      return GiveValue(head->packet_bytes, room, out, bytes_out);
    case CL_PIPE_MAX_PACKETS:
      return GiveValue(head->max_packets, room, out, bytes_out);
    case CL_PIPE_PROPERTIES:
      return Give(nullptr, 0, room, nullptr, bytes_out);
    default:
      return CL_INVALID_VALUE;
  }
}

cl_int CL_API_CALL GetMemObjectInfo(cl_mem memory, cl_mem_info param, size_t room, void* out,
                                    size_t* bytes_out) {
  if (param == CL_MEM_TYPE && FindPipe(memory) != nullptr)
    return GiveValue(cl_mem_object_type{CL_MEM_OBJECT_PIPE}, room, out, bytes_out);
  return Pocl().clGetMemObjectInfo(memory, param, room, out, bytes_out);
}

// The properties of a queue that is not the host's; false for a host queue.
bool IsOnDevice(const cl_queue_properties* properties, DeviceQueue* queue) {
  queue->bytes = kPreferredQueueBytes;
  for (; properties != nullptr && *properties != 0; properties += 2) {
    if (properties[0] == CL_QUEUE_PROPERTIES) queue->flags = properties[1];
    if (properties[0] == CL_QUEUE_SIZE) queue->bytes = static_cast<cl_uint>(properties[1]);
  }
  return (queue->flags & CL_QUEUE_ON_DEVICE) != 0;
}

cl_command_queue CL_API_CALL CreateQueue(cl_context context, cl_device_id device,
                                         const cl_queue_properties* properties, cl_int* error) {
  DeviceQueue queue;
  if (context == nullptr || device == nullptr || !IsOnDevice(properties, &queue))
    return Pocl().clCreateCommandQueueWithProperties(context, device, properties, error);
  // Section 5.1: "If CL_QUEUE_ON_DEVICE is set then CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE must
  // also be set".
  if ((queue.flags & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0)
    return static_cast<cl_command_queue>(Refuse(CL_INVALID_VALUE, error));
  if (queue.bytes > kMaxQueueBytes)
    return static_cast<cl_command_queue>(Refuse(CL_INVALID_QUEUE_PROPERTIES, error));
  queue.context = context;
  queue.device = device;
  const cl_command_queue made = Pocl().clCreateCommandQueue(
      context, device,
      queue.flags & (CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE), error);
  if (made == nullptr) return nullptr;
  std::lock_guard<std::mutex> lock(g_objects_mu);
  g_queues[made] = queue;
  if ((queue.flags & CL_QUEUE_ON_DEVICE_DEFAULT) != 0) g_default_queues[{context, device}] = made;
  return made;
}

cl_int CL_API_CALL ReleaseQueue(cl_command_queue queue) {
  cl_uint references = 0;
  if (queue != nullptr)
    Pocl().clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof(references), &references,
                                 nullptr);
  if (references == 1) {
    std::lock_guard<std::mutex> lock(g_objects_mu);
    g_queues.erase(queue);
    std::erase_if(g_default_queues, [queue](const auto& entry) { return entry.second == queue; });
  }
  return Pocl().clReleaseCommandQueue(queue);
}

cl_int CL_API_CALL GetQueueInfo(cl_command_queue queue, cl_command_queue_info param, size_t room,
                                void* out, size_t* bytes_out) {
  std::unique_lock<std::mutex> lock(g_objects_mu);
  const auto found = g_queues.find(queue);
  if (param == CL_QUEUE_SIZE) {
    if (found == g_queues.end()) return CL_INVALID_COMMAND_QUEUE;
    return GiveValue(found->second.bytes, room, out, bytes_out);
  }
  if (param == CL_QUEUE_PROPERTIES && found != g_queues.end())
    return GiveValue(found->second.flags, room, out, bytes_out);
  lock.unlock();
  if (param != CL_QUEUE_DEVICE_DEFAULT || queue == nullptr)
    return Pocl().clGetCommandQueueInfo(queue, param, room, out, bytes_out);
  std::pair<cl_context, cl_device_id> place;
  Pocl().clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(place.first), &place.first, nullptr);
  Pocl().clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof(place.second), &place.second,
                               nullptr);
  lock.lock();
  const auto by_default = g_default_queues.find(place);
  return GiveValue(by_default == g_default_queues.end() ? nullptr : by_default->second, room, out,
                   bytes_out);
}

cl_int CL_API_CALL SetDefaultQueue(cl_context context, cl_device_id device,
                                   cl_command_queue queue) {
  if (context == nullptr) return CL_INVALID_CONTEXT;
  if (device == nullptr) return CL_INVALID_DEVICE;
  std::lock_guard<std::mutex> lock(g_objects_mu);
  const auto found = g_queues.find(queue);
  if (found == g_queues.end() || found->second.context != context ||
      found->second.device != device) {
    return CL_INVALID_COMMAND_QUEUE;
  }
  g_default_queues[{context, device}] = queue;
  return CL_SUCCESS;
}

}  // namespace

cl_ulong AddressOfPipe(cl_mem memory) { return reinterpret_cast<cl_ulong>(FindPipe(memory)); }

cl_ulong SizeOfDeviceQueue(cl_command_queue queue) {
  std::lock_guard<std::mutex> lock(g_objects_mu);
  const auto found = g_queues.find(queue);
  return found == g_queues.end() ? 0 : found->second.bytes;
}

void ReplaceObjectFunctions(cl_icd_dispatch* table) {
  table->clCreateContext = &CreateContext;
  table->clCreatePipe = &CreatePipe;
  table->clGetPipeInfo = &GetPipeInfo;
  table->clGetMemObjectInfo = &GetMemObjectInfo;
  table->clCreateCommandQueueWithProperties = &CreateQueue;
  table->clReleaseCommandQueue = &ReleaseQueue;
  table->clGetCommandQueueInfo = &GetQueueInfo;
  table->clSetDefaultDeviceCommandQueue = &SetDefaultQueue;
}

}  // namespace sluice::complete_driver
