// SPDX-License-Identifier: Apache-2.0
// Launches: clEnqueueNDRangeKernel and its narrower forms. They return before the driver has seen
// them, so everything that the specification lets a caller do wrong is judged here, from the
// kernel's and the device's descriptions.
#include <algorithm>
#include <cstdio>
#include <string>

#include "client_icd/base/api.h"
#include "client_icd/objects/enqueue.h"
#include "client_icd/objects/kernel.h"
#include "proto/codec.h"

namespace sluice::client {
namespace {

// "OpenCL 3.0 ..." as 300.
int DeviceVersion(const Device& device) {
  int major = 0;
  int minor = 0;
  const std::string text(device.info().Text(CL_DEVICE_VERSION));
  if (std::sscanf(text.c_str(), "OpenCL %d.%d", &major, &minor) != 2) return 100;
  return major * 100 + minor * 10;
}

// Section 5.8.6 (-cl-uniform-work-group-size) and 5.10: work-groups must be uniform if the device
// cannot have others, if the program says so, or if it is written in a version of OpenCL C before
// 2.0. If the language was not named, the driver judges.
bool MustBeUniform(const Program& program, const Device& device, int version) {
  if (version < 200) return true;
  if (version >= 300 && device.info().Scalar<cl_bool>(CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT,
                                                      CL_FALSE) == CL_FALSE) {
    return true;
  }
  const std::string options = program.OptionsFor(device);
  return options.find("-cl-uniform-work-group-size") != std::string::npos ||
         options.find("-cl-std=CL1.") != std::string::npos;
}

struct WorkSizes {
  cl_uint dimensions;
  const size_t* offset;
  const size_t* global;
  const size_t* local;

  bool empty() const {
    return global == nullptr || std::find(global, global + dimensions, 0) != global + dimensions;
  }
};

cl_int CheckGlobal(const LaunchLimits& limits, const WorkSizes& sizes) {
  // Section 5.10: CL_INVALID_GLOBAL_WORK_SIZE if global_work_size is NULL or any of its values is
  // 0; deprecated by version 2.1, whose devices take that for no work. Also if a value exceeds the
  // device's size_t.
  if (sizes.empty()) return limits.allows_empty ? CL_SUCCESS : CL_INVALID_GLOBAL_WORK_SIZE;
  for (cl_uint i = 0; i < sizes.dimensions; ++i) {
    if (sizes.global[i] > limits.max_size) return CL_INVALID_GLOBAL_WORK_SIZE;
    // CL_INVALID_GLOBAL_OFFSET if global_work_size + global_work_offset for any dimension is
    // greater than the device's size_t can hold.
    if (sizes.offset != nullptr && sizes.offset[i] > limits.max_size - sizes.global[i])
      return CL_INVALID_GLOBAL_OFFSET;
  }
  return CL_SUCCESS;
}

cl_int CheckLocal(const LaunchLimits& limits, const WorkSizes& given) {
  const bool has_required = limits.required_size[0] != 0;
  WorkSizes sizes = given;
  if (sizes.local == nullptr && !has_required) return CL_SUCCESS;
  if (sizes.local == nullptr) sizes.local = limits.required_size;
  const std::vector<size_t>& max_sizes = limits.device->max_work_item_sizes();
  uint64_t items = 1;
  for (cl_uint i = 0; i < sizes.dimensions; ++i) {
    const size_t local = sizes.local[i];
    // A work-group has at least one work-item in every dimension.
    if (local == 0) return CL_INVALID_WORK_GROUP_SIZE;
    // CL_INVALID_WORK_ITEM_SIZE if the number of work-items in any local_work_size[i] is greater
    // than the corresponding CL_DEVICE_MAX_WORK_ITEM_SIZES[i].
    if (i < max_sizes.size() && local > max_sizes[i]) return CL_INVALID_WORK_ITEM_SIZE;
    // CL_INVALID_WORK_GROUP_SIZE if local_work_size does not match the required work-group size for
    // kernel.
    if (has_required && local != limits.required_size[i]) return CL_INVALID_WORK_GROUP_SIZE;
    if (!CheckedMultiply(items, local, &items)) return CL_INVALID_WORK_GROUP_SIZE;
    // ... or if the work-group size must be uniform and the global_work_size is not divisible by
    // it.
    if (limits.uniform && !sizes.empty() && sizes.global[i] % local != 0)
      return CL_INVALID_WORK_GROUP_SIZE;
  }
  for (cl_uint i = sizes.dimensions; has_required && i < 3; ++i) {
    if (limits.required_size[i] > 1) return CL_INVALID_WORK_GROUP_SIZE;
  }
  // ... or if the total number of work-items in the work-group is greater than
  // CL_KERNEL_WORK_GROUP_SIZE.
  const bool too_many = items > limits.device->max_work_group_size() ||
                        (limits.work_group_size != 0 && items > limits.work_group_size);
  return too_many ? CL_INVALID_WORK_GROUP_SIZE : CL_SUCCESS;
}

cl_int CheckLaunchLocked(Kernel* kernel, const Device& device, const WorkSizes& sizes)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(kernel->mu()) {
  const LaunchLimits& limits = kernel->LimitsLocked(device);
  // CL_INVALID_PROGRAM_EXECUTABLE if there is no successfully built program executable available
  // for device.
  if (!limits.executable) return CL_INVALID_PROGRAM_EXECUTABLE;
  CL_RETURN_IF_ERROR(kernel->CheckArgsLocked(device));
  // CL_INVALID_WORK_DIMENSION if work_dim is not between 1 and CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS;
  // more than 3 no caller's arrays are read for.
  CL_RETURN_IF_ERROR(CheckWorkDim(sizes.dimensions));
  if (sizes.dimensions > device.max_work_item_dimensions()) return CL_INVALID_WORK_DIMENSION;
  CL_RETURN_IF_ERROR(CheckGlobal(limits, sizes));
  CL_RETURN_IF_ERROR(CheckLocal(limits, sizes));
  // CL_OUT_OF_RESOURCES if there is a failure to queue the execution instance of kernel because of
  // insufficient resources needed to execute it: for example, more local memory than there is.
  return kernel->LocalArgBytesLocked() > limits.local_memory ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}

cl_int Launch(cl_command_queue queue_handle, cl_kernel kernel_handle, const WorkSizes& sizes,
              cl_uint num_events, const cl_event* wait_list, cl_event* event,
              cl_command_type type) {
  Queue* queue = Queue::FromHost(queue_handle);
  if (queue == nullptr) return CL_INVALID_COMMAND_QUEUE;
  Kernel* kernel = Kernel::From(kernel_handle);
  if (kernel == nullptr) return CL_INVALID_KERNEL;
  // CL_INVALID_CONTEXT if the contexts associated with command_queue and kernel are not the same.
  if (&queue->context() != &kernel->context()) return CL_INVALID_CONTEXT;
  EnqueueCall call(queue, num_events, wait_list, event, type);
  // cl_khr_terminate_context: whatever is asked of a terminated context, that is the answer.
  if (queue->session().lost()) CL_RETURN_IF_ERROR(call.status());
  absl::MutexLock lock(&kernel->mu());
  CL_RETURN_IF_ERROR(CheckLaunchLocked(kernel, queue->device(), sizes));
  CL_RETURN_IF_ERROR(call.status());
  // No work: "the kernel command will trivially succeed after its event dependencies are
  // satisfied".
  if (sizes.empty()) return call.SubmitNothing();
  pb::EnqueueNdRangeKernel& body = *call.command().mutable_enqueue_nd_range_kernel();
  body.set_kernel_id(kernel->id());
  // Without local_work_size, the required work-group size is the one (OpenCL 3.0): CheckLocal has
  // seen it.
  const LaunchLimits& limits = kernel->LimitsLocked(queue->device());
  const bool required = sizes.local == nullptr && limits.required_size[0] != 0;
  wire::EncodeNdRange(sizes.dimensions, sizes.global, required ? limits.required_size : sizes.local,
                      sizes.offset, body.mutable_range());
  kernel->TakeChangedArgsLocked(body.mutable_changed_args());
  return call.Submit(body.mutable_on());
}

}  // namespace

const LaunchLimits& Kernel::LimitsLocked(const Device& device) {
  for (LaunchLimits& limits : limits_) {
    if (limits.device != &device) continue;
    // A build for the device may have ended since.
    if (!limits.executable) limits.executable = program_->HasExecutableFor(device);
    return limits;
  }
  const int version = DeviceVersion(device);
  LaunchLimits limits;
  limits.device = &device;
  limits.uniform = MustBeUniform(*program_, device, version);
  limits.allows_empty = version >= 210;
  const cl_uint bits = device.info().Scalar<cl_uint>(CL_DEVICE_ADDRESS_BITS, 64);
  limits.max_size = bits == 32 ? UINT32_MAX : UINT64_MAX;
  limits.executable = program_->HasExecutableFor(device);
  if (const pb::KernelDeviceDescription* about = metadata_->ForDevice(device)) {
    limits.work_group_size = about->work_group_size();
    const cl_ulong local_memory =
        device.info().Scalar<cl_ulong>(CL_DEVICE_LOCAL_MEM_SIZE, UINT64_MAX);
    limits.local_memory = local_memory - std::min<cl_ulong>(local_memory, about->local_mem_size());
    for (int i = 0; i < 3 && i < about->compile_work_group_size_size(); ++i) {
      limits.required_size[i] = about->compile_work_group_size(i);
    }
  }
  limits_.push_back(limits);
  return limits_.back();
}

namespace api {

cl_int CL_API_CALL clEnqueueNDRangeKernel(
    cl_command_queue command_queue, cl_kernel kernel, cl_uint work_dim,
    const size_t* global_work_offset, const size_t* global_work_size, const size_t* local_work_size,
    cl_uint num_events_in_wait_list, const cl_event* event_wait_list, cl_event* event) noexcept {
  return Launch(command_queue, kernel,
                {work_dim, global_work_offset, global_work_size, local_work_size},
                num_events_in_wait_list, event_wait_list, event, CL_COMMAND_NDRANGE_KERNEL);
}

cl_int CL_API_CALL clEnqueueTask(cl_command_queue command_queue, cl_kernel kernel,
                                 cl_uint num_events_in_wait_list, const cl_event* event_wait_list,
                                 cl_event* event) noexcept {
  // OpenCL 1.2 section 5.8: equivalent to clEnqueueNDRangeKernel with one work-item of one
  // dimension.
  const size_t one = 1;
  return Launch(command_queue, kernel, {1, nullptr, &one, &one}, num_events_in_wait_list,
                event_wait_list, event, CL_COMMAND_TASK);
}

cl_int CL_API_CALL clEnqueueNativeKernel(cl_command_queue command_queue,
                                         void(CL_CALLBACK* user_func)(void*), void* args,
                                         size_t cb_args, cl_uint num_mem_objects,
                                         const cl_mem* mem_list, const void** args_mem_loc,
                                         cl_uint /*num_events_in_wait_list*/,
                                         const cl_event* /*event_wait_list*/,
                                         cl_event* /*event*/) noexcept {
  if (Queue::FromHost(command_queue) == nullptr) return CL_INVALID_COMMAND_QUEUE;
  // Section 5.11: CL_INVALID_VALUE if user_func is NULL, or args and its objects do not go
  // together.
  if (user_func == nullptr) return CL_INVALID_VALUE;
  if (args == nullptr ? cb_args > 0 || num_mem_objects > 0 : cb_args == 0) return CL_INVALID_VALUE;
  const bool has_objects = num_mem_objects > 0;
  if (has_objects != (mem_list != nullptr) || has_objects != (args_mem_loc != nullptr))
    return CL_INVALID_VALUE;
  // CL_INVALID_OPERATION if the device associated with command_queue cannot execute the native
  // kernel: the application's code is here, the device elsewhere.
  return CL_INVALID_OPERATION;
}

cl_int CL_API_CALL clGetKernelSuggestedLocalWorkSizeKHR(
    cl_command_queue command_queue, cl_kernel kernel_handle, cl_uint work_dim,
    const size_t* global_work_offset, const size_t* global_work_size,
    size_t* suggested_local_work_size) noexcept {
  Queue* queue = Queue::FromHost(command_queue);
  if (queue == nullptr) return CL_INVALID_COMMAND_QUEUE;
  Kernel* kernel = Kernel::From(kernel_handle);
  if (kernel == nullptr) return CL_INVALID_KERNEL;
  if (&queue->context() != &kernel->context()) return CL_INVALID_CONTEXT;
  const WorkSizes sizes = {work_dim, global_work_offset, global_work_size, nullptr};
  ScopedCommand command;
  pb::GetKernelSuggestedLocalWorkSize& body =
      *command->mutable_get_kernel_suggested_local_work_size();
  pb::Answer answer;
  {
    absl::MutexLock lock(&kernel->mu());
    CL_RETURN_IF_ERROR(CheckLaunchLocked(kernel, queue->device(), sizes));
    // cl_khr_suggested_local_work_size: CL_INVALID_GLOBAL_WORK_SIZE if global_work_size is NULL or
    // a value is 0; CL_INVALID_VALUE if suggested_local_work_size is NULL.
    if (sizes.empty()) return CL_INVALID_GLOBAL_WORK_SIZE;
    if (suggested_local_work_size == nullptr) return CL_INVALID_VALUE;
    body.set_queue_id(queue->id());
    body.set_kernel_id(kernel->id());
    wire::EncodeNdRange(work_dim, global_work_size, nullptr, global_work_offset,
                        body.mutable_range());
    kernel->TakeChangedArgsLocked(body.mutable_changed_args());
    // Under the lock, though it waits: the changed arguments must reach the worker before the next
    // launch.
    CL_RETURN_IF_ERROR(kernel->stream().Call(*command, {}, &answer));
  }
  if (answer.data().size() != work_dim * sizeof(uint64_t)) return CL_OUT_OF_RESOURCES;
  for (cl_uint i = 0; i < work_dim; ++i) {
    uint64_t size;
    __builtin_memcpy(&size, answer.data().data() + i * sizeof(size), sizeof(size));
    suggested_local_work_size[i] = size;
  }
  return CL_SUCCESS;
}

}  // namespace api
}  // namespace sluice::client
