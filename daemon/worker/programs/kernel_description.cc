// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/programs/kernel_description.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "daemon/worker/info_reader.h"
#include "daemon/worker/own_questions.h"

namespace sluice::worker {
namespace {

std::string ArgText(cl_kernel kernel, cl_uint index, cl_kernel_arg_info param) {
  std::string text;
  ReadInfo(
      [&](size_t size, void* value, size_t* size_ret) {
        return cl().clGetKernelArgInfo(kernel, index, param, size, value, size_ret);
      },
      &text);
  return text.substr(0, text.find('\0'));
}

std::string KernelText(cl_kernel kernel, cl_kernel_info param) {
  std::string text;
  ReadInfo(
      [&](size_t size, void* value, size_t* size_ret) {
        return cl().clGetKernelInfo(kernel, param, size, value, size_ret);
      },
      &text);
  return text.substr(0, text.find('\0'));
}

// OpenCL C's own names of image types; `image_desc_t` may be any structure of the application's.
bool IsImageTypeName(std::string_view name) {
  static constexpr std::string_view kNames[] = {"image1d_t",
                                                "image1d_array_t",
                                                "image1d_buffer_t",
                                                "image2d_t",
                                                "image2d_array_t",
                                                "image2d_depth_t",
                                                "image2d_array_depth_t",
                                                "image2d_msaa_t",
                                                "image2d_array_msaa_t",
                                                "image2d_msaa_depth_t",
                                                "image2d_array_msaa_depth_t",
                                                "image3d_t"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// A value of a handle's size may be a handle, under whatever name: only the driver tells, by what
// it makes of a null one. (A driver may take it; a sampler that has another name than sampler_t is
// nothing to it anyway.)
pb::KernelArgDescription::Kind AskForHandle(cl_kernel kernel, cl_uint index) {
  const void* const none = nullptr;
  switch (cl().clSetKernelArg(kernel, index, sizeof(none), &none)) {
    case CL_INVALID_SAMPLER:
      return pb::KernelArgDescription::SAMPLER;
    case CL_INVALID_DEVICE_QUEUE:
      return pb::KernelArgDescription::QUEUE;
    default:
      return pb::KernelArgDescription::VALUE;
  }
}

// A name alone says little, since a typedef may hide an image and a structure may be called like
// one. "If the argument is not an image type and is not declared with the pipe qualifier" the
// access qualifier is NONE (section 5.9.4); some drivers tell none at all.
pb::KernelArgDescription::Kind KindOf(cl_kernel kernel, cl_uint index,
                                      const pb::KernelArgDescription& arg) {
  using Kind = pb::KernelArgDescription;
  if (arg.address_qualifier() == CL_KERNEL_ARG_ADDRESS_LOCAL) return Kind::LOCAL;
  if ((arg.type_qualifier() & CL_KERNEL_ARG_TYPE_PIPE) != 0) return Kind::PIPE;
  const uint32_t access = arg.access_qualifier();
  if ((access != 0 && access != CL_KERNEL_ARG_ACCESS_NONE) || IsImageTypeName(arg.type_name()))
    return Kind::IMAGE;
  if (arg.type_name() == "sampler_t") return Kind::SAMPLER;
  if (arg.type_name() == "queue_t") return Kind::QUEUE;
  if (arg.address_qualifier() != CL_KERNEL_ARG_ADDRESS_PRIVATE) return Kind::MEMORY;
  return AskForHandle(kernel, index);
}

void DescribeArg(cl_kernel kernel, cl_uint index, pb::KernelArgDescription* out) {
  cl_kernel_arg_address_qualifier address = 0;
  cl_kernel_arg_access_qualifier access = 0;
  cl_kernel_arg_type_qualifier type = 0;
  if (cl().clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof(address),
                              &address, nullptr) != CL_SUCCESS) {
    return;  // Kind UNKNOWN: a binary whose driver kept nothing.
  }
  cl().clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ACCESS_QUALIFIER, sizeof(access), &access,
                          nullptr);
  cl().clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_TYPE_QUALIFIER, sizeof(type), &type,
                          nullptr);
  out->set_has_info(true);
  out->set_address_qualifier(address);
  out->set_access_qualifier(access);
  out->set_type_qualifier(type);
  out->set_type_name(ArgText(kernel, index, CL_KERNEL_ARG_TYPE_NAME));
  out->set_name(ArgText(kernel, index, CL_KERNEL_ARG_NAME));
  out->set_kind(KindOf(kernel, index, *out));
}

// Only the part that the driver does not say; clGetKernelArgInfo answers as the driver does all the
// same.
void FillFromRecord(const pb::KernelDescription& known, pb::KernelDescription* out) {
  for (int i = 0; i < out->args_size(); ++i) {
    if (out->args(i).kind() != pb::KernelArgDescription::UNKNOWN) continue;
    *out->mutable_args(i) = known.args(i);
    out->mutable_args(i)->set_has_info(false);
  }
}

void DescribeOnDevice(cl_kernel kernel, const DeviceObject& device,
                      pb::KernelDeviceDescription* out) {
  const auto read = [&](cl_kernel_work_group_info param, auto* value) {
    return cl().clGetKernelWorkGroupInfo(kernel, device.handle, param, sizeof(*value), value,
                                         nullptr) == CL_SUCCESS;
  };
  out->set_device_id(device.id);
  size_t size = 0;
  if (read(CL_KERNEL_WORK_GROUP_SIZE, &size)) out->set_work_group_size(size);
  size_t three[3] = {};
  if (read(CL_KERNEL_COMPILE_WORK_GROUP_SIZE, &three)) {
    for (const size_t value : three) out->add_compile_work_group_size(value);
  }
  cl_ulong bytes = 0;
  if (read(CL_KERNEL_LOCAL_MEM_SIZE, &bytes)) out->set_local_mem_size(bytes);
  size = 0;
  if (read(CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, &size))
    out->set_preferred_work_group_size_multiple(size);
  bytes = 0;
  if (read(CL_KERNEL_PRIVATE_MEM_SIZE, &bytes)) out->set_private_mem_size(bytes);
  // Refused but for custom devices and built-in kernels (section 5.9.4).
  if (read(CL_KERNEL_GLOBAL_WORK_SIZE, &three)) {
    for (const size_t value : three) out->add_global_work_size(value);
  }
}

}  // namespace

bool DescribeArguments(cl_kernel kernel, const pb::ProgramRecord* record,
                       pb::KernelDescription* out) {
  const ScopedOwnQuestions own_questions;
  out->set_name(KernelText(kernel, CL_KERNEL_FUNCTION_NAME));
  cl_uint args = 0;
  cl().clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof(args), &args, nullptr);
  for (cl_uint i = 0; i < args; ++i) DescribeArg(kernel, i, out->add_args());
  if (record != nullptr) {
    for (const pb::KernelDescription& known : record->kernels()) {
      if (known.name() == out->name() && known.args_size() == out->args_size())
        FillFromRecord(known, out);
    }
  }
  return std::all_of(out->args().begin(), out->args().end(), [](const auto& arg) {
    return arg.kind() != pb::KernelArgDescription::UNKNOWN;
  });
}

UniqueCl<cl_kernel> MakeUnaskedKernel(const ContextObject& context, ArgInfoAsked asked) {
  const ScopedOwnQuestions own_questions;
  const char* const options = asked == ArgInfoAsked::kWithoutOptions ? nullptr : "";
  const char* text = "kernel void k(global int* out) { out[0] = 0; }";
  cl_int status = CL_SUCCESS;
  const UniqueCl<cl_program> program(
      cl().clCreateProgramWithSource(context.handle.get(), 1, &text, nullptr, &status));
  if (status != CL_SUCCESS ||
      cl().clBuildProgram(program.get(), 0, nullptr, options, nullptr, nullptr) != CL_SUCCESS) {
    return {};
  }
  return UniqueCl<cl_kernel>(cl().clCreateKernel(program.get(), "k", &status));
}

void DescribeKernel(cl_kernel kernel, const ProgramObject& program, ArgInfoAsked asked,
                    pb::KernelDescription* out) {
  const ScopedOwnQuestions own_questions;
  DescribeArguments(kernel, program.record.get(), out);
  // The client asks for what it may tell (ReadUnaskedKernelArg).
  if (asked != ArgInfoAsked::kYes) {
    for (pb::KernelArgDescription& arg : *out->mutable_args()) arg.set_has_info(false);
  }
  out->set_attributes(KernelText(kernel, CL_KERNEL_ATTRIBUTES));
  for (const auto& device : program.devices) DescribeOnDevice(kernel, *device, out->add_devices());
}

void DescribeKernels(const ProgramObject& program, ArgInfoAsked asked, pb::Answer* out) {
  constexpr cl_uint kMost = 256;
  const ScopedOwnQuestions own_questions;
  const cl_program handle = program.handle.get();
  const auto has_executable = [handle](const auto& device) {
    cl_program_binary_type type = CL_PROGRAM_BINARY_TYPE_NONE;
    cl().clGetProgramBuildInfo(handle, device->handle, CL_PROGRAM_BINARY_TYPE, sizeof(type), &type,
                               nullptr);
    return type == CL_PROGRAM_BINARY_TYPE_EXECUTABLE;
  };
  if (std::none_of(program.devices.begin(), program.devices.end(), has_executable)) return;
  cl_uint count = 0;
  cl_kernel kernels[kMost] = {};
  if (cl().clCreateKernelsInProgram(handle, 0, nullptr, &count) != CL_SUCCESS || count > kMost ||
      cl().clCreateKernelsInProgram(handle, count, kernels, nullptr) != CL_SUCCESS) {
    return;
  }
  out->set_count(count);
  for (cl_uint i = 0; i < count; ++i) {
    const UniqueCl<cl_kernel> kernel(kernels[i]);
    DescribeKernel(kernel.get(), program, asked, out->add_kernels());
  }
}

}  // namespace sluice::worker
