// SPDX-License-Identifier: Apache-2.0
// Kernels as objects: creation, queries. Arguments are in kernel_args.cc, launches in
// kernel_launch.cc.
#include "client_icd/objects/kernel.h"

#include <algorithm>
#include <vector>

#include "client_icd/base/api.h"
#include "client_icd/base/args.h"

namespace sluice::client {

Kernel::Kernel(Ref<Program> program, uint64_t id) : ClObject(id), program_(std::move(program)) {
  program_->AttachKernel();
}

Kernel::~Kernel() {
  program_->DetachKernel();
  if (metadata_ != nullptr) session().ReleaseObject(id());
}

void Kernel::SetMade(std::shared_ptr<KernelMetadata> metadata) {
  metadata_ = std::move(metadata);
  absl::MutexLock lock(&mu_);
  args_.resize(metadata_->arg_count());
}

void Kernel::CopyArgsFrom(Kernel& source) {
  std::vector<Arg> args;
  {
    absl::MutexLock lock(&source.mu_);
    args = source.args_;
  }
  // The driver's clone may lack what the source had not sent yet: all of them travel with the first
  // launch.
  for (Arg& arg : args) arg.changed = arg.value.kind != KernelArgValue::Kind::kUnset;
  absl::MutexLock lock(&mu_);
  args_ = std::move(args);
}

cl_int Kernel::GetInfo(cl_kernel_info param_name, const InfoSink& sink) {
  switch (param_name) {
    case CL_KERNEL_FUNCTION_NAME:
      return sink.String(metadata_->name());
    case CL_KERNEL_NUM_ARGS:
      return sink.Value<cl_uint>(metadata_->arg_count());
    case CL_KERNEL_REFERENCE_COUNT:
      return sink.Value<cl_uint>(app_count());
    case CL_KERNEL_CONTEXT:
      return sink.Value<cl_context>(context().handle());
    case CL_KERNEL_PROGRAM:
      return sink.Value<cl_program>(program_->handle());
    case CL_KERNEL_ATTRIBUTES:
      return sink.String(metadata_->attributes());
    default:
      return WireInfo(session(), {pb::GetInfo::KERNEL, id(), param_name}, sink);
  }
}

cl_int Kernel::GetArgInfo(cl_uint index, cl_kernel_arg_info param_name, const InfoSink& sink) {
  // Section 5.9.4: CL_INVALID_ARG_INDEX if arg_indx is not a valid argument index.
  if (index >= metadata_->arg_count()) return CL_INVALID_ARG_INDEX;
  const pb::KernelArgDescription& arg = metadata_->arg(index);
  const WireQuery query{pb::GetInfo::KERNEL_ARG, id(), param_name, 0, index};
  if (!arg.has_info()) return WireInfo(session(), query, sink);
  switch (param_name) {
    case CL_KERNEL_ARG_ADDRESS_QUALIFIER:
      return sink.Value<cl_kernel_arg_address_qualifier>(arg.address_qualifier());
    case CL_KERNEL_ARG_ACCESS_QUALIFIER:
      return sink.Value<cl_kernel_arg_access_qualifier>(arg.access_qualifier());
    case CL_KERNEL_ARG_TYPE_QUALIFIER:
      return sink.Value<cl_kernel_arg_type_qualifier>(arg.type_qualifier());
    case CL_KERNEL_ARG_TYPE_NAME:
      return sink.String(arg.type_name());
    case CL_KERNEL_ARG_NAME:
      return sink.String(arg.name());
    default:
      return WireInfo(session(), query, sink);
  }
}

cl_int Kernel::GetWorkGroupInfo(const Device& device, cl_kernel_work_group_info param_name,
                                const InfoSink& sink) {
  const pb::KernelDeviceDescription* about = metadata_->ForDevice(device);
  // Section 5.9.4: CL_INVALID_DEVICE if device is not in the list of devices associated with
  // kernel.
  if (about == nullptr) return CL_INVALID_DEVICE;
  switch (param_name) {
    case CL_KERNEL_WORK_GROUP_SIZE:
      return sink.Value<size_t>(about->work_group_size());
    case CL_KERNEL_COMPILE_WORK_GROUP_SIZE: {
      size_t sizes[3] = {0, 0, 0};
      for (int i = 0; i < 3 && i < about->compile_work_group_size_size(); ++i) {
        sizes[i] = about->compile_work_group_size(i);
      }
      return sink.Bytes(sizes, sizeof(sizes));
    }
    case CL_KERNEL_LOCAL_MEM_SIZE: {
      // Includes local memory for arguments declared as pointers with the __local qualifier and
      // whose size has been set.
      absl::MutexLock lock(&mu_);
      return sink.Value<cl_ulong>(about->local_mem_size() + LocalArgBytesLocked());
    }
    case CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE:
      return sink.Value<size_t>(about->preferred_work_group_size_multiple());
    case CL_KERNEL_PRIVATE_MEM_SIZE:
      return sink.Value<cl_ulong>(about->private_mem_size());
    case CL_KERNEL_GLOBAL_WORK_SIZE: {
      // Section 5.9.4: CL_INVALID_VALUE if device is not a custom device and kernel is not a
      // built-in kernel, which the driver has judged.
      if (about->global_work_size_size() != 3) return CL_INVALID_VALUE;
      size_t sizes[3];
      for (int i = 0; i < 3; ++i) sizes[i] = about->global_work_size(i);
      return sink.Bytes(sizes, sizeof(sizes));
    }
    default:
      return WireInfo(session(), {pb::GetInfo::KERNEL_WORK_GROUP, id(), param_name, device.id()},
                      sink);
  }
}

namespace {

// The device of a query that may leave it out: CL_INVALID_DEVICE if it is NULL and there is more
// than one, or is none of the program's (section 5.9.4).
cl_int FindDevice(const Kernel& kernel, cl_device_id handle, Device** out) {
  const std::span<Device* const> devices = kernel.program().devices();
  if (handle == nullptr && devices.size() != 1) return CL_INVALID_DEVICE;
  for (Device* device : devices) {
    if (handle != nullptr && device->handle() != handle) continue;
    *out = device;
    return CL_SUCCESS;
  }
  return CL_INVALID_DEVICE;
}

cl_int GetSubGroupInfo(cl_kernel kernel_handle, cl_device_id device_handle,
                       cl_kernel_sub_group_info param_name, size_t input_value_size,
                       const void* input_value, const InfoSink& sink) {
  Kernel* kernel = Kernel::From(kernel_handle);
  if (kernel == nullptr) return CL_INVALID_KERNEL;
  Device* device = nullptr;
  CL_RETURN_IF_ERROR(FindDevice(*kernel, device_handle, &device));
  // Section 5.9.4: CL_INVALID_OPERATION if device does not support sub-groups.
  const InfoTable& info = device->info();
  const bool has_extension = info.HasWord(CL_DEVICE_EXTENSIONS, "cl_khr_subgroups");
  if (info.Scalar<cl_uint>(CL_DEVICE_MAX_NUM_SUB_GROUPS, 0) == 0 && !has_extension)
    return CL_INVALID_OPERATION;
  // CL_INVALID_VALUE if input_value is NULL and param_name needs one, or its size is not a list of
  // sizes.
  if (input_value == nullptr && input_value_size != 0) return CL_INVALID_VALUE;
  if (input_value_size > 3 * sizeof(size_t)) return CL_INVALID_VALUE;
  const std::string_view input(static_cast<const char*>(input_value), input_value_size);
  WireQuery query{pb::GetInfo::KERNEL_SUB_GROUP, kernel->id(), param_name, device->id(), 0, input};
  // A size_t[] that "may have one, two or three elements": its room asks for so many dimensions.
  if (param_name == CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT) {
    const size_t room = sink.value() != nullptr ? sink.room() : 0;
    query.room = static_cast<uint32_t>(std::min(room, 3 * sizeof(size_t)));
  }
  return WireInfo(kernel->session(), query, sink);
}

// Takes over what the worker answered for one kernel; false if it answered nothing.
bool Accept(Kernel* kernel, const pb::Answer& answer, int index) {
  if (index >= answer.kernels_size()) return false;
  kernel->SetMade(kernel->program().Metadata(answer.kernels(index)));
  return true;
}

// Asks the driver only if the build has not told of the program's kernels.
cl_int CreateKernel(Program* program, const std::string& name, Ref<Kernel>* out) {
  std::shared_ptr<KernelMetadata> known;
  // Section 5.9.1: CL_INVALID_KERNEL_NAME if kernel_name is not found in program.
  if (program->KnowsKernels(name, &known) && known == nullptr) return CL_INVALID_KERNEL_NAME;
  auto kernel = Ref<Kernel>::Adopt(new Kernel(Ref<Program>(program), program->session().NextId()));
  ScopedCommand command;
  pb::CreateKernel& body = *command->mutable_create_kernel();
  body.set_kernel_id(kernel->id());
  body.set_program_id(program->id());
  body.set_name(name);
  pb::Answer answer;
  CL_RETURN_IF_ERROR(
      program->context().Create(*command, {}, {.needs_answer = known == nullptr}, &answer));
  if (known != nullptr) {
    kernel->SetMade(std::move(known));
  } else if (!Accept(kernel.get(), answer, 0)) {
    return CL_OUT_OF_RESOURCES;
  }
  *out = std::move(kernel);
  return CL_SUCCESS;
}

// Has the driver make all `count` kernels of the program.
cl_int AskForKernels(Program* program, size_t count, std::vector<Ref<Kernel>>* made) {
  const uint64_t first_id = program->session().NextIds(count);
  for (size_t i = 0; i < count; ++i) {
    made->push_back(Ref<Kernel>::Adopt(new Kernel(Ref<Program>(program), first_id + i)));
  }
  ScopedCommand command;
  pb::CreateKernelsInProgram& body = *command->mutable_create_kernels_in_program();
  body.set_program_id(program->id());
  body.set_first_id(first_id);
  body.set_max_kernels(static_cast<uint32_t>(count));
  pb::Answer answer;
  CL_RETURN_IF_ERROR(program->stream().Call(*command, {}, &answer));
  for (size_t i = 0; i < count; ++i) {
    if (!Accept((*made)[i].get(), answer, static_cast<int>(i))) return CL_OUT_OF_RESOURCES;
  }
  return CL_SUCCESS;
}

}  // namespace

namespace api {

cl_kernel CL_API_CALL clCreateKernel(cl_program program_handle, const char* kernel_name,
                                     cl_int* errcode_ret) noexcept {
  Program* program = Program::From(program_handle);
  if (program == nullptr) return Fail(errcode_ret, CL_INVALID_PROGRAM);
  // Section 5.9.1: CL_INVALID_VALUE if kernel_name is NULL.
  if (kernel_name == nullptr) return Fail(errcode_ret, CL_INVALID_VALUE);
  // CL_INVALID_PROGRAM_EXECUTABLE if there is no successfully built executable for program.
  if (!program->HasExecutable()) return Fail(errcode_ret, CL_INVALID_PROGRAM_EXECUTABLE);
  Ref<Kernel> kernel;
  const cl_int status = CreateKernel(program, kernel_name, &kernel);
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  Succeed(errcode_ret);
  return kernel.Detach()->handle();
}

cl_int CL_API_CALL clCreateKernelsInProgram(cl_program program_handle, cl_uint num_kernels,
                                            cl_kernel* kernels, cl_uint* num_kernels_ret) noexcept {
  Program* program = Program::From(program_handle);
  if (program == nullptr) return CL_INVALID_PROGRAM;
  if (!program->HasExecutable()) return CL_INVALID_PROGRAM_EXECUTABLE;
  const std::vector<std::string> names = program->KernelNames();
  size_t count = names.size();
  if (names.empty()) {
    CL_RETURN_IF_ERROR(
        program->GetInfo(CL_PROGRAM_NUM_KERNELS, InfoSink(sizeof(count), &count, nullptr)));
  }
  // Section 5.9.1: CL_INVALID_VALUE if kernels is not NULL and num_kernels is less than the number
  // of kernels in program.
  if (kernels != nullptr && num_kernels < count) return CL_INVALID_VALUE;
  if (num_kernels_ret != nullptr) *num_kernels_ret = static_cast<cl_uint>(count);
  if (kernels == nullptr) return CL_SUCCESS;
  std::vector<Ref<Kernel>> made;
  if (names.empty()) {
    CL_RETURN_IF_ERROR(AskForKernels(program, count, &made));
  } else {
    for (const std::string& name : names)
      CL_RETURN_IF_ERROR(CreateKernel(program, name, &made.emplace_back()));
  }
  for (size_t i = 0; i < count; ++i) kernels[i] = made[i].Detach()->handle();
  return CL_SUCCESS;
}

cl_kernel CL_API_CALL clCloneKernel(cl_kernel source_kernel, cl_int* errcode_ret) noexcept {
  Kernel* source = Kernel::From(source_kernel);
  if (source == nullptr) return Fail(errcode_ret, CL_INVALID_KERNEL);
  auto kernel =
      Ref<Kernel>::Adopt(new Kernel(Ref<Program>(&source->program()), source->session().NextId()));
  ScopedCommand command;
  pb::CloneKernel& body = *command->mutable_clone_kernel();
  body.set_kernel_id(kernel->id());
  body.set_source_id(source->id());
  pb::Answer answer;
  const cl_int status = source->stream().Call(*command, {}, &answer);
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  if (!Accept(kernel.get(), answer, 0)) return Fail(errcode_ret, CL_OUT_OF_RESOURCES);
  kernel->CopyArgsFrom(*source);
  Succeed(errcode_ret);
  return kernel.Detach()->handle();
}

cl_int CL_API_CALL clRetainKernel(cl_kernel kernel) noexcept {
  return RetainHandle<Kernel>(kernel, CL_INVALID_KERNEL);
}

cl_int CL_API_CALL clReleaseKernel(cl_kernel kernel) noexcept {
  return ReleaseHandle<Kernel>(kernel, CL_INVALID_KERNEL);
}

cl_int CL_API_CALL clGetKernelInfo(cl_kernel kernel_handle, cl_kernel_info param_name,
                                   size_t param_value_size, void* param_value,
                                   size_t* param_value_size_ret) noexcept {
  Kernel* kernel = Kernel::From(kernel_handle);
  if (kernel == nullptr) return CL_INVALID_KERNEL;
  return kernel->GetInfo(param_name, InfoSink(param_value_size, param_value, param_value_size_ret));
}

cl_int CL_API_CALL clGetKernelArgInfo(cl_kernel kernel_handle, cl_uint arg_indx,
                                      cl_kernel_arg_info param_name, size_t param_value_size,
                                      void* param_value, size_t* param_value_size_ret) noexcept {
  Kernel* kernel = Kernel::From(kernel_handle);
  if (kernel == nullptr) return CL_INVALID_KERNEL;
  return kernel->GetArgInfo(arg_indx, param_name,
                            InfoSink(param_value_size, param_value, param_value_size_ret));
}

cl_int CL_API_CALL clGetKernelWorkGroupInfo(cl_kernel kernel_handle, cl_device_id device_handle,
                                            cl_kernel_work_group_info param_name,
                                            size_t param_value_size, void* param_value,
                                            size_t* param_value_size_ret) noexcept {
  Kernel* kernel = Kernel::From(kernel_handle);
  if (kernel == nullptr) return CL_INVALID_KERNEL;
  Device* device = nullptr;
  CL_RETURN_IF_ERROR(FindDevice(*kernel, device_handle, &device));
  return kernel->GetWorkGroupInfo(*device, param_name,
                                  InfoSink(param_value_size, param_value, param_value_size_ret));
}

cl_int CL_API_CALL clGetKernelSubGroupInfo(cl_kernel kernel, cl_device_id device,
                                           cl_kernel_sub_group_info param_name,
                                           size_t input_value_size, const void* input_value,
                                           size_t param_value_size, void* param_value,
                                           size_t* param_value_size_ret) noexcept {
  return GetSubGroupInfo(kernel, device, param_name, input_value_size, input_value,
                         InfoSink(param_value_size, param_value, param_value_size_ret));
}

cl_int CL_API_CALL clGetKernelSubGroupInfoKHR(cl_kernel kernel, cl_device_id device,
                                              cl_kernel_sub_group_info param_name,
                                              size_t input_value_size, const void* input_value,
                                              size_t param_value_size, void* param_value,
                                              size_t* param_value_size_ret) noexcept {
  return GetSubGroupInfo(kernel, device, param_name, input_value_size, input_value,
                         InfoSink(param_value_size, param_value, param_value_size_ret));
}

}  // namespace api
}  // namespace sluice::client
