// SPDX-License-Identifier: Apache-2.0
// Kernels: arguments that are pipes and device queues; sub-groups, of kSubGroup work-items.
#include <algorithm>
#include <numeric>

#include "tests/complete_driver/complete_driver.h"

namespace sluice::complete_driver {
namespace {

cl_int CL_API_CALL SetArg(cl_kernel kernel, cl_uint index, size_t bytes, const void* value) {
  const Arg arg = ArgOf(kernel, index);
  if (arg.kind == Arg::Kind::kPlain) return Pocl().clSetKernelArg(kernel, index, bytes, value);
  if (bytes != sizeof(void*)) return CL_INVALID_ARG_SIZE;
  const bool is_pipe = arg.kind == Arg::Kind::kPipe;
  cl_ulong told = 0;
  if (value != nullptr) {
    told = is_pipe ? AddressOfPipe(*static_cast<const cl_mem*>(value))
                   : SizeOfDeviceQueue(*static_cast<const cl_command_queue*>(value));
  }
  if (told == 0) return is_pipe ? CL_INVALID_MEM_OBJECT : CL_INVALID_DEVICE_QUEUE;
  return Pocl().clSetKernelArg(kernel, index, sizeof(told), &told);
}

// PoCL's knowledge is of the numbers that stand for them.
bool GiveOursOfArg(const Arg& arg, cl_kernel_arg_info param, size_t room, void* out,
                   size_t* bytes_out, cl_int* status) {
  const bool is_pipe = arg.kind == Arg::Kind::kPipe;
  const cl_uint address = is_pipe ? CL_KERNEL_ARG_ADDRESS_GLOBAL : CL_KERNEL_ARG_ADDRESS_PRIVATE;
  const cl_uint pipes_access =
      arg.is_read ? CL_KERNEL_ARG_ACCESS_READ_ONLY : CL_KERNEL_ARG_ACCESS_WRITE_ONLY;
  const cl_uint access = is_pipe ? pipes_access : CL_KERNEL_ARG_ACCESS_NONE;
  const cl_ulong type = is_pipe ? CL_KERNEL_ARG_TYPE_PIPE : CL_KERNEL_ARG_TYPE_NONE;
  switch (param) {
    case CL_KERNEL_ARG_ADDRESS_QUALIFIER:
      *status = GiveValue(address, room, out, bytes_out);
      return true;
    case CL_KERNEL_ARG_ACCESS_QUALIFIER:
      *status = GiveValue(access, room, out, bytes_out);
      return true;
    case CL_KERNEL_ARG_TYPE_QUALIFIER:
      *status = GiveValue(type, room, out, bytes_out);
      return true;
    case CL_KERNEL_ARG_TYPE_NAME:
      *status = GiveText(is_pipe ? arg.type : "queue_t", room, out, bytes_out);
      return true;
    default:
      return false;
  }
}

cl_int CL_API_CALL GetArgInfo(cl_kernel kernel, cl_uint index, cl_kernel_arg_info param,
                              size_t room, void* out, size_t* bytes_out) {
  const Arg arg = ArgOf(kernel, index);
  cl_int status = CL_SUCCESS;
  if (arg.kind != Arg::Kind::kPlain && GiveOursOfArg(arg, param, room, out, bytes_out, &status))
    return status;
  return Pocl().clGetKernelArgInfo(kernel, index, param, room, out, bytes_out);
}

// Section 5.9.4, table "List of supported param_names by clGetKernelSubGroupInfo".
cl_int CL_API_CALL GetSubGroupInfo(cl_kernel kernel, cl_device_id device,
                                   cl_kernel_sub_group_info param, size_t input_bytes,
                                   const void* input, size_t room, void* out, size_t* bytes_out) {
  if (kernel == nullptr) return CL_INVALID_KERNEL;
  if (device == nullptr) return CL_INVALID_DEVICE;
  const size_t* const numbers = static_cast<const size_t*>(input);
  const size_t dimensions = input == nullptr ? 0 : input_bytes / sizeof(size_t);
  const bool is_range = dimensions >= 1 && dimensions <= 3 && input_bytes % sizeof(size_t) == 0;
  size_t items = 1;
  for (size_t i = 0; is_range && i < dimensions; ++i) items *= numbers[i];
  switch (param) {
    case CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE:
      if (!is_range) return CL_INVALID_VALUE;
      return GiveValue(std::min(kSubGroup, items), room, out, bytes_out);
    case CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE:
      if (!is_range) return CL_INVALID_VALUE;
      return GiveValue((items + kSubGroup - 1) / kSubGroup, room, out, bytes_out);
    case CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT: {
      // The room says for how many dimensions.
      if (input == nullptr || input_bytes != sizeof(size_t)) return CL_INVALID_VALUE;
      const size_t sizes[3] = {numbers[0] * kSubGroup, 1, 1};
      const size_t wanted = out == nullptr ? sizeof(size_t) : room;
      if (wanted == 0 || wanted % sizeof(size_t) != 0 || wanted > sizeof(sizes))
        return CL_INVALID_VALUE;
      return Give(sizes, wanted, room, out, bytes_out);
    }
    case CL_KERNEL_MAX_NUM_SUB_GROUPS:
      return GiveValue(size_t{64}, room, out, bytes_out);
    case CL_KERNEL_COMPILE_NUM_SUB_GROUPS:
      return GiveValue(size_t{0}, room, out, bytes_out);
    default:
      return CL_INVALID_VALUE;
  }
}

// As many work-items of each dimension as divide it, kSubGroup at most.
cl_int CL_API_CALL GetSuggestedLocalSize(cl_command_queue queue, cl_kernel kernel,
                                         cl_uint dimensions, const size_t*, const size_t* global,
                                         size_t* out) {
  if (queue == nullptr) return CL_INVALID_COMMAND_QUEUE;
  if (kernel == nullptr) return CL_INVALID_KERNEL;
  if (dimensions < 1 || dimensions > 3) return CL_INVALID_WORK_DIMENSION;
  if (global == nullptr) return CL_INVALID_GLOBAL_WORK_SIZE;
  if (out == nullptr) return CL_INVALID_VALUE;
  for (cl_uint i = 0; i < dimensions; ++i) out[i] = std::gcd(global[i], kSubGroup);
  return CL_SUCCESS;
}

void* CL_API_CALL FindFunction(cl_platform_id platform, const char* name) {
  if (std::strcmp(name, "clGetKernelSuggestedLocalWorkSizeKHR") == 0)
    return reinterpret_cast<void*>(&GetSuggestedLocalSize);
  return Pocl().clGetExtensionFunctionAddressForPlatform(platform, name);
}

}  // namespace

void ReplaceKernelFunctions(cl_icd_dispatch* table) {
  table->clSetKernelArg = &SetArg;
  table->clGetKernelArgInfo = &GetArgInfo;
  table->clGetKernelSubGroupInfo = &GetSubGroupInfo;
  table->clGetKernelSubGroupInfoKHR = &GetSubGroupInfo;
  table->clGetExtensionFunctionAddressForPlatform = &FindFunction;
}

}  // namespace sluice::complete_driver
