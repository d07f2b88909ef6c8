// SPDX-License-Identifier: Apache-2.0
// Every clGet*Info, with as many parameters as the worker needs to be told something true.
#include <cstring>
#include <vector>

#include "daemon/worker/memory/external_memory_names.h"
#include "tests/fake_cl/fake_objects.h"

namespace sluice::fake {

cl_int Give(const void* value, size_t size, size_t room, void* out, size_t* size_ret) {
  if (size_ret != nullptr) *size_ret = size;
  if (out == nullptr) return CL_SUCCESS;
  if (room < size) return CL_INVALID_VALUE;
  std::memcpy(out, value, size);
  return CL_SUCCESS;
}

cl_int CL_API_CALL fake_clGetPlatformInfo(cl_platform_id, cl_platform_info param, size_t room,
                                          void* out, size_t* size_ret) {
  switch (param) {
    case CL_PLATFORM_NAME:
      return GiveText("Fake Platform", room, out, size_ret);
    case CL_PLATFORM_VENDOR:
      return GiveText("Fake Vendor", room, out, size_ret);
    case CL_PLATFORM_VERSION:
      return GiveText("OpenCL 3.0 fake", room, out, size_ret);
    case CL_PLATFORM_PROFILE:
      return GiveText("FULL_PROFILE", room, out, size_ret);
    case CL_PLATFORM_EXTENSIONS:
      return GiveText("cl_khr_icd cl_khr_fp64 cl_fake_secret", room, out, size_ret);
    default:
      return CL_INVALID_VALUE;
  }
}

// The types of handles that the device imports.
cl_int GiveImports(const _cl_device_id& device, size_t room, void* out, size_t* size_ret) {
  std::vector<cl_uint> types;
  if (&device == &g_runtime->gpu && g_runtime->gpu_uuid.has_value())
    types.push_back(CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR);
  if (&device == &g_runtime->gpu && g_runtime->gpu_luid.has_value())
    types.push_back(CL_EXTERNAL_MEMORY_HANDLE_D3D11_TEXTURE_KHR);
  if (types.empty()) return CL_INVALID_VALUE;
  return Give(types.data(), types.size() * sizeof(cl_uint), room, out, size_ret);
}

cl_int CL_API_CALL fake_clGetDeviceInfo(cl_device_id device, cl_device_info param, size_t room,
                                        void* out, size_t* size_ret) {
  switch (param) {
    case CL_DEVICE_NAME:
      return GiveText(device->name, room, out, size_ret);
    case CL_DEVICE_VERSION:
      return GiveText(device->version, room, out, size_ret);
    case CL_DEVICE_VENDOR_ID:
      return GiveValue(device->vendor_id, room, out, size_ret);
    case CL_DEVICE_TYPE:
      return GiveValue(device->type, room, out, size_ret);
    case CL_DEVICE_GLOBAL_MEM_SIZE:
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
      return GiveValue(cl_ulong{1} << 30, room, out, size_ret);
    case CL_DEVICE_EXTENSIONS:
      return GiveText(device->extensions, room, out, size_ret);
    case CL_DEVICE_UUID_KHR:
      if (device != &g_runtime->gpu || !g_runtime->gpu_uuid.has_value()) return CL_INVALID_VALUE;
      return GiveValue(*g_runtime->gpu_uuid, room, out, size_ret);
    case CL_DRIVER_UUID_KHR:
      return GiveValue(FakeCl::kDriverUuid, room, out, size_ret);
    case CL_DEVICE_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR:
      return GiveImports(*device, room, out, size_ret);
    case CL_DEVICE_LUID_KHR:
      if (device != &g_runtime->gpu || !g_runtime->gpu_luid.has_value()) return CL_INVALID_VALUE;
      return GiveValue(*g_runtime->gpu_luid, room, out, size_ret);
    case CL_DEVICE_LUID_VALID_KHR: {
      const bool valid = device == &g_runtime->gpu && g_runtime->gpu_luid.has_value();
      return GiveValue(static_cast<cl_bool>(valid), room, out, size_ret);
    }
    case CL_DEVICE_SEMAPHORE_IMPORT_HANDLE_TYPES_KHR:
      if (device != &g_runtime->gpu || !g_runtime->gpu_semaphores) return CL_INVALID_VALUE;
      return GiveValue(cl_uint{CL_SEMAPHORE_HANDLE_OPAQUE_FD_KHR}, room, out, size_ret);
    case CL_DEVICE_BUILT_IN_KERNELS:
      return GiveText(device == &g_runtime->gpu ? "a;b" : "", room, out, size_ret);
    case CL_DEVICE_IMAGE_SUPPORT:
      return GiveValue(cl_bool{CL_TRUE}, room, out, size_ret);
    case CL_DEVICE_QUEUE_ON_HOST_PROPERTIES:
      return GiveValue(cl_command_queue_properties{CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE |
                                                   CL_QUEUE_PROFILING_ENABLE},
                       room, out, size_ret);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
      return GiveValue(size_t{256}, room, out, size_ret);
    case CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS:
      return GiveValue(cl_uint{3}, room, out, size_ret);
    case CL_DEVICE_MAX_WORK_ITEM_SIZES: {
      const size_t three[3] = {256, 256, 64};
      return GiveValue(three, room, out, size_ret);
    }
    case CL_DEVICE_MAX_COMPUTE_UNITS:
      return GiveValue(cl_uint{4}, room, out, size_ret);
    case CL_DEVICE_SVM_CAPABILITIES:
      return GiveValue(cl_device_svm_capabilities{CL_DEVICE_SVM_COARSE_GRAIN_BUFFER}, room, out,
                       size_ret);
    default:
      return CL_INVALID_VALUE;
  }
}

cl_int CL_API_CALL fake_clGetContextInfo(cl_context context, cl_context_info param, size_t room,
                                         void* out, size_t* size_ret) {
  if (param != CL_CONTEXT_NUM_DEVICES) return CL_INVALID_VALUE;
  return GiveValue(static_cast<cl_uint>(context->devices.size()), room, out, size_ret);
}

cl_int CL_API_CALL fake_clGetCommandQueueInfo(cl_command_queue queue, cl_command_queue_info param,
                                              size_t room, void* out, size_t* size_ret) {
  if (param != CL_QUEUE_PROPERTIES) return CL_INVALID_VALUE;
  return GiveValue(queue->properties, room, out, size_ret);
}

cl_int CL_API_CALL fake_clGetMemObjectInfo(cl_mem memory, cl_mem_info param, size_t room, void* out,
                                           size_t* size_ret) {
  switch (param) {
    case CL_MEM_SIZE:
      return GiveValue(memory->size, room, out, size_ret);
    case CL_MEM_FLAGS:
      return GiveValue(memory->flags, room, out, size_ret);
    default:
      return CL_INVALID_VALUE;
  }
}

cl_int CL_API_CALL fake_clGetImageInfo(cl_mem image, cl_image_info param, size_t room, void* out,
                                       size_t* size_ret) {
  if (image->element == 0) return CL_INVALID_MEM_OBJECT;
  switch (param) {
    case CL_IMAGE_ELEMENT_SIZE:
      return GiveValue(image->element, room, out, size_ret);
    case CL_IMAGE_ROW_PITCH:
      return GiveValue(image->row_pitch, room, out, size_ret);
    case CL_IMAGE_SLICE_PITCH:
      return GiveValue(image->extent[2] > 1 ? image->row_pitch * image->extent[1] : size_t{0}, room,
                       out, size_ret);
    case CL_IMAGE_WIDTH:
      return GiveValue(image->extent[0], room, out, size_ret);
    default:
      return CL_INVALID_VALUE;
  }
}

cl_int CL_API_CALL fake_clGetPipeInfo(cl_mem pipe, cl_pipe_info param, size_t room, void* out,
                                      size_t* size_ret) {
  if (pipe->type != CL_MEM_OBJECT_PIPE) return CL_INVALID_MEM_OBJECT;
  if (param != CL_PIPE_PACKET_SIZE) return CL_INVALID_VALUE;
  return GiveValue(cl_uint{16}, room, out, size_ret);
}

cl_int CL_API_CALL fake_clGetSamplerInfo(cl_sampler, cl_sampler_info param, size_t room, void* out,
                                         size_t* size_ret) {
  if (param != CL_SAMPLER_FILTER_MODE) return CL_INVALID_VALUE;
  return GiveValue(cl_filter_mode{CL_FILTER_LINEAR}, room, out, size_ret);
}

cl_int CL_API_CALL fake_clGetProgramInfo(cl_program program, cl_program_info param, size_t room,
                                         void* out, size_t* size_ret) {
  const std::lock_guard lock(g_runtime->mu);
  const size_t devices = program->devices.size();
  switch (param) {
    case CL_PROGRAM_SOURCE:
      return GiveText(program->source, room, out, size_ret);
    case CL_PROGRAM_NUM_KERNELS:
      return GiveValue(size_t{2}, room, out, size_ret);
    case CL_PROGRAM_BINARY_SIZES: {
      const std::vector<size_t> sizes(devices, program->binary.size());
      return Give(sizes.data(), devices * sizeof(size_t), room, out, size_ret);
    }
    case CL_PROGRAM_BINARIES:
      if (room < devices * sizeof(unsigned char*)) return CL_INVALID_VALUE;
      for (size_t i = 0; i < devices; ++i) {
        unsigned char* const to = static_cast<unsigned char**>(out)[i];
        if (to != nullptr) std::memcpy(to, program->binary.data(), program->binary.size());
      }
      return CL_SUCCESS;
    default:
      return CL_INVALID_VALUE;
  }
}

cl_int CL_API_CALL fake_clGetProgramBuildInfo(cl_program program, cl_device_id device,
                                              cl_program_build_info param, size_t room, void* out,
                                              size_t* size_ret) {
  if (device == nullptr) return CL_INVALID_DEVICE;
  const std::lock_guard lock(g_runtime->mu);
  switch (param) {
    case CL_PROGRAM_BUILD_STATUS:
      return GiveValue(program->build_status, room, out, size_ret);
    case CL_PROGRAM_BINARY_TYPE:
      return GiveValue(program->binary_type, room, out, size_ret);
    case CL_PROGRAM_BUILD_LOG:
      return GiveText("the log", room, out, size_ret);
    case CL_PROGRAM_BUILD_OPTIONS:
      return GiveText(program->options, room, out, size_ret);
    default:
      return CL_INVALID_VALUE;
  }
}

cl_int CL_API_CALL fake_clGetKernelInfo(cl_kernel kernel, cl_kernel_info param, size_t room,
                                        void* out, size_t* size_ret) {
  switch (param) {
    case CL_KERNEL_FUNCTION_NAME:
      return GiveText(kernel->name, room, out, size_ret);
    case CL_KERNEL_NUM_ARGS:
      return GiveValue(cl_uint{5}, room, out, size_ret);
    case CL_KERNEL_ATTRIBUTES:
      return GiveText("", room, out, size_ret);
    default:
      return CL_INVALID_VALUE;
  }
}

cl_int CL_API_CALL fake_clGetKernelArgInfo(cl_kernel kernel, cl_uint index,
                                           cl_kernel_arg_info param, size_t room, void* out,
                                           size_t* size_ret) {
  if (index > 4) return CL_INVALID_ARG_INDEX;
  if (g_runtime->forgetful_binaries && kernel->program->from_binary)
    return CL_KERNEL_ARG_INFO_NOT_AVAILABLE;
  if (g_runtime->arg_info_on_request &&
      kernel->program->options.find("-cl-kernel-arg-info") == std::string::npos)
    return CL_KERNEL_ARG_INFO_NOT_AVAILABLE;
  switch (param) {
    case CL_KERNEL_ARG_ADDRESS_QUALIFIER:
      return GiveValue(g_runtime->arguments[index].address, room, out, size_ret);
    case CL_KERNEL_ARG_ACCESS_QUALIFIER:
      return GiveValue(g_runtime->arguments[index].access, room, out, size_ret);
    case CL_KERNEL_ARG_TYPE_QUALIFIER:
      return GiveValue(cl_kernel_arg_type_qualifier{0}, room, out, size_ret);
    case CL_KERNEL_ARG_TYPE_NAME:
      return GiveText(g_runtime->arguments[index].type, room, out, size_ret);
    case CL_KERNEL_ARG_NAME:
      return GiveText("arg" + std::to_string(index), room, out, size_ret);
    default:
      return CL_INVALID_VALUE;
  }
}

cl_int CL_API_CALL fake_clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device,
                                                 cl_kernel_work_group_info param, size_t room,
                                                 void* out, size_t* size_ret) {
  if (device == nullptr) return CL_INVALID_DEVICE;
  if (param == CL_KERNEL_WORK_GROUP_SIZE) return GiveValue(size_t{256}, room, out, size_ret);
  if (param == CL_KERNEL_COMPILE_WORK_GROUP_SIZE) {
    const size_t three[3] = {0, 0, 0};
    return GiveValue(three, room, out, size_ret);
  }
  if (param == CL_KERNEL_GLOBAL_WORK_SIZE && kernel->program->built_in) {
    const size_t three[3] = {1024, 512, 64};
    return GiveValue(three, room, out, size_ret);
  }
  return CL_INVALID_VALUE;
}

cl_int CL_API_CALL fake_clGetKernelSubGroupInfo(cl_kernel, cl_device_id device,
                                                cl_kernel_sub_group_info param, size_t input_size,
                                                const void* input, size_t room, void* out,
                                                size_t* size_ret) {
  if (device == nullptr) return CL_INVALID_DEVICE;
  NoteBytes(input, input_size);
  if (param == CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT) {
    // As Intel's: for as many dimensions as there is room for.
    if (room == 0 || room % sizeof(size_t) != 0 || room > 3 * sizeof(size_t))
      return CL_INVALID_VALUE;
    const size_t sizes[3] = {64, 2, 1};
    return Give(sizes, room, room, out, size_ret);
  }
  return GiveValue(size_t{32}, room, out, size_ret);
}

namespace {

bool EndsLate(cl_event event) {
  return g_runtime->kernels_end_late && event->status == CL_COMPLETE && event->queue != nullptr &&
         event->type != CL_COMMAND_WRITE_BUFFER && event->type != CL_COMMAND_READ_BUFFER &&
         event->context->pending > event->queue->pending.size();
}

}  // namespace

cl_int CL_API_CALL fake_clGetEventInfo(cl_event event, cl_event_info param, size_t room, void* out,
                                       size_t* size_ret) {
  const std::lock_guard lock(g_runtime->mu);
  switch (param) {
    case CL_EVENT_COMMAND_EXECUTION_STATUS:
      return GiveValue(EndsLate(event) ? CL_SUBMITTED : event->status, room, out, size_ret);
    case CL_EVENT_COMMAND_TYPE:
      return GiveValue(event->type, room, out, size_ret);
    default:
      return CL_INVALID_VALUE;
  }
}

cl_int CL_API_CALL fake_clGetEventProfilingInfo(cl_event event, cl_profiling_info param,
                                                size_t room, void* out, size_t* size_ret) {
  const std::lock_guard lock(g_runtime->mu);
  if (event->queue == nullptr || (event->queue->properties & CL_QUEUE_PROFILING_ENABLE) == 0 ||
      event->status != CL_COMPLETE || param < CL_PROFILING_COMMAND_QUEUED ||
      param > CL_PROFILING_COMMAND_END) {
    return CL_PROFILING_INFO_NOT_AVAILABLE;
  }
  return GiveValue(cl_ulong{1000 + param - CL_PROFILING_COMMAND_QUEUED}, room, out, size_ret);
}

namespace {

cl_int CL_API_CALL SuggestLocalSize(cl_command_queue, cl_kernel, cl_uint dims, const size_t*,
                                    const size_t* global, size_t* suggested) {
  for (cl_uint i = 0; i < dims; ++i) suggested[i] = global[i] / 2;
  return CL_SUCCESS;
}

template <bool kAcquire>
cl_int CL_API_CALL ChangeOwner(cl_command_queue queue, cl_uint, const cl_mem*, cl_uint waits,
                               const cl_event* list, cl_event* event) {
  const cl_command_type type = kAcquire ? CL_COMMAND_ACQUIRE_EXTERNAL_MEM_OBJECTS_KHR
                                        : CL_COMMAND_RELEASE_EXTERNAL_MEM_OBJECTS_KHR;
  return Submit(queue, type, waits, list, event, [] {
    const std::lock_guard lock(g_runtime->mu);
    g_runtime->ownership_changes.push_back(kAcquire);
    return g_runtime->on_ownership_change ? g_runtime->on_ownership_change(kAcquire) : CL_SUCCESS;
  });
}

}  // namespace

void* CL_API_CALL fake_clGetExtensionFunctionAddressForPlatform(cl_platform_id, const char* name) {
  NoteBytes(name, std::strlen(name));
  if (std::strcmp(name, "clEnqueueAcquireExternalMemObjectsKHR") == 0) {
    return reinterpret_cast<void*>(&ChangeOwner<true>);
  }
  if (std::strcmp(name, "clEnqueueReleaseExternalMemObjectsKHR") == 0) {
    return reinterpret_cast<void*>(&ChangeOwner<false>);
  }
  if (void* const function = FindSemaphoreFunction(name); function != nullptr) return function;
  if (std::strcmp(name, "clGetKernelSuggestedLocalWorkSizeKHR") != 0) return nullptr;
  return reinterpret_cast<void*>(&SuggestLocalSize);
}

}  // namespace sluice::fake
