// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/info_reader.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "daemon/worker/handlers/handlers.h"
#include "daemon/worker/own_questions.h"
#include "daemon/worker/programs/kernel_description.h"
#include "daemon/worker/queues/queue.h"

namespace sluice::worker {
namespace {

// Values that are handles of the driver, or pointers of this process. The client answers these from
// what it knows; whoever asks for them here wants to know where things lie.
bool IsHandle(cl_uint param) {
  switch (param) {
    case CL_DEVICE_PLATFORM:
    case CL_DEVICE_PARENT_DEVICE:
    case CL_CONTEXT_DEVICES:
    case CL_CONTEXT_PROPERTIES:
    case CL_QUEUE_CONTEXT:
    case CL_QUEUE_DEVICE:
    case CL_QUEUE_DEVICE_DEFAULT:
    case CL_MEM_HOST_PTR:
    case CL_MEM_CONTEXT:
    case CL_MEM_ASSOCIATED_MEMOBJECT:
    case CL_IMAGE_BUFFER:
    case CL_SAMPLER_CONTEXT:
    case CL_PROGRAM_CONTEXT:
    case CL_PROGRAM_DEVICES:
    case CL_KERNEL_CONTEXT:
    case CL_KERNEL_PROGRAM:
    case CL_EVENT_COMMAND_QUEUE:
    case CL_EVENT_CONTEXT:
      return true;
    default:
      return false;
  }
}

// One driver function per kind: `find` gives the object's handle, `get` asks the driver.
template <typename T, typename Get>
HandlerResult Read(Session& session, const pb::GetInfo& cmd, Call& call, Get&& get) {
  T* const object = session.objects().Peek<T>(cmd.id());
  if (object == nullptr || !object->handle) return T::kInvalid;
  return ReadInfo(
      [&](size_t size, void* value, size_t* size_ret) {
        return get(object->handle.get(), cmd.param_name(), size, value, size_ret);
      },
      call.answer.mutable_data());
}

// Of those that the program has to do with: another driver's would be no handle to this one.
cl_device_id DeviceOf(Session& session, const pb::GetInfo& cmd, const ProgramObject* program) {
  const DeviceObject* const device = session.objects().Peek<DeviceObject>(cmd.device_id());
  const bool good = device != nullptr && program != nullptr && program->context->Has(*device);
  return good ? device->handle : nullptr;
}
cl_device_id DeviceOfProgram(Session& session, const pb::GetInfo& cmd) {
  return DeviceOf(session, cmd, session.objects().Peek<ProgramObject>(cmd.id()));
}
cl_device_id DeviceOfKernel(Session& session, const pb::GetInfo& cmd) {
  const KernelObject* const kernel = session.objects().Peek<KernelObject>(cmd.id());
  return kernel == nullptr ? nullptr : DeviceOf(session, cmd, kernel->program.get());
}

// A client that has the binaries may make programs of them later, when the driver may no longer
// know the arguments of their kernels.
void RecordArguments(Session& session, const ProgramObject& program, std::string_view binaries,
                     const std::vector<size_t>& lengths) {
  const ScopedOwnQuestions own_questions;  // Of a program that may be a library.
  cl_uint count = 0;
  if (cl().clCreateKernelsInProgram(program.handle.get(), 0, nullptr, &count) != CL_SUCCESS ||
      count == 0) {
    return;  // Not an executable.
  }
  std::vector<cl_kernel> handles(count);
  if (cl().clCreateKernelsInProgram(program.handle.get(), count, handles.data(), nullptr) !=
      CL_SUCCESS) {
    return;
  }
  pb::ProgramRecord record;
  bool complete = true;
  for (const cl_kernel handle : handles) {
    const UniqueCl<cl_kernel> kernel(handle);
    complete &= DescribeArguments(handle, program.record.get(), record.add_kernels());
  }
  if (!complete) return;
  size_t at = 0;
  for (const size_t length : lengths) {
    session.argument_records().Note(binaries.substr(at, length), record);
    at += length;
  }
}

template <typename T>
cl_int ReadProgramArray(const ProgramObject& program, cl_program_info param, std::vector<T>* out) {
  std::string bytes;
  const cl_int status = ReadInfo(
      [&](size_t size, void* value, size_t* size_ret) {
        return cl().clGetProgramInfo(program.handle.get(), param, size, value, size_ret);
      },
      &bytes);
  out->resize(bytes.size() / sizeof(T));
  if (!out->empty()) std::memcpy(out->data(), bytes.data(), out->size() * sizeof(T));
  return status;
}

// For each of the program's devices, the place of its binary among the driver's. A driver may have
// one for all sub-devices of a device, which it names in their stead.
cl_int FindBinaries(const ProgramObject& program, size_t count, std::vector<size_t>* places) {
  if (count == program.devices.size()) {
    for (size_t i = 0; i < count; ++i) places->push_back(i);
    return CL_SUCCESS;
  }
  std::vector<cl_device_id> devices;
  const cl_int status = ReadProgramArray(program, CL_PROGRAM_DEVICES, &devices);
  if (status != CL_SUCCESS) return status;
  devices.resize(std::min(devices.size(), count));
  for (const auto& device : program.devices) {
    auto found = devices.end();
    cl_device_id handle = device->handle;
    while (handle != nullptr && found == devices.end()) {
      found = std::find(devices.begin(), devices.end(), handle);
      cl_device_id parent = nullptr;
      cl().clGetDeviceInfo(handle, CL_DEVICE_PARENT_DEVICE, sizeof(parent), &parent, nullptr);
      handle = parent;
    }
    if (found == devices.end()) return CL_OUT_OF_RESOURCES;
    places->push_back(static_cast<size_t>(found - devices.begin()));
  }
  return CL_SUCCESS;
}

// CL_PROGRAM_BINARY_SIZES and CL_PROGRAM_BINARIES, which fills buffers of the caller: for each of
// the program's devices.
HandlerResult ReadBinaries(Session& session, const pb::GetInfo& cmd, Call& call) {
  ProgramObject* const program = session.objects().Peek<ProgramObject>(cmd.id());
  if (program == nullptr || !program->handle) return CL_INVALID_PROGRAM;
  std::vector<size_t> drivers;
  cl_int status = ReadProgramArray(*program, CL_PROGRAM_BINARY_SIZES, &drivers);
  std::vector<size_t> places;
  if (status == CL_SUCCESS) status = FindBinaries(*program, drivers.size(), &places);
  if (status != CL_SUCCESS) return status;
  std::vector<size_t> lengths;
  for (const size_t place : places) lengths.push_back(drivers[place]);
  std::string& data = *call.answer.mutable_data();
  if (cmd.param_name() == CL_PROGRAM_BINARY_SIZES) {
    data.assign(reinterpret_cast<const char*>(lengths.data()), lengths.size() * sizeof(size_t));
    return CL_SUCCESS;
  }
  std::vector<std::string> binaries;
  std::vector<unsigned char*> pointers;
  for (const size_t length : drivers) binaries.emplace_back(length, '\0');
  for (std::string& binary : binaries)
    pointers.push_back(binary.empty() ? nullptr : reinterpret_cast<unsigned char*>(binary.data()));
  status = cl().clGetProgramInfo(program->handle.get(), CL_PROGRAM_BINARIES,
                                 pointers.size() * sizeof(pointers[0]), pointers.data(), nullptr);
  if (status != CL_SUCCESS) return status;
  for (const size_t place : places) data += binaries[place];
  RecordArguments(session, *program, data, lengths);
  return CL_SUCCESS;
}

// Section 5.9.3: CL_KERNEL_ARG_INFO_NOT_AVAILABLE if the argument information is not available for
// kernel, as it need not be if the program was built without -cl-kernel-arg-info. Our builds always
// have the option; what the driver would have said without, it says of a kernel of our own.
HandlerResult ReadUnaskedKernelArg(Session& session, const pb::GetInfo& cmd, Call& call,
                                   std::shared_ptr<KernelObject> kernel) {
  const auto answer = [&session, sequence = call.sequence()](cl_int status, std::string data) {
    pb::Reply reply;
    reply.mutable_answer()->set_sequence(sequence);
    reply.mutable_answer()->set_status(status);
    reply.mutable_answer()->set_data(std::move(data));
    session.replies().Send(reply, wire::Wake::kWaiter);
  };
  Builds::Work work;
  work.run = [&session, cmd, answer, asked = kernel->program->arg_info_asked,
              kernel = std::move(kernel)] {
    const auto [unasked, is_new] = session.unasked_kernels.try_emplace(asked);
    if (is_new) unasked->second = MakeUnaskedKernel(*kernel->program->context, asked);
    cl_int status = CL_KERNEL_ARG_INFO_NOT_AVAILABLE;
    if (cl_kernel const like = unasked->second.get(); like != nullptr)
      status = cl().clGetKernelArgInfo(like, 0, cmd.param_name(), 0, nullptr, nullptr);
    std::string data;
    if (status == CL_SUCCESS) {
      status = ReadInfo(
          [&](size_t size, void* value, size_t* size_ret) {
            return cl().clGetKernelArgInfo(kernel->handle.get(), cmd.index(), cmd.param_name(),
                                           size, value, size_ret);
          },
          &data);
    }
    return [answer, status, data] { answer(status, data); };
  };
  work.give_up = [answer](const std::string&) { answer(CL_KERNEL_ARG_INFO_NOT_AVAILABLE, ""); };
  if (!session.builds().Post(std::move(work))) return CL_OUT_OF_RESOURCES;
  return HandlerResult::Later();
}

// Where the room is part of the question, the driver is asked with the application's own.
HandlerResult ReadSubGroupInfo(Session& session, const pb::GetInfo& cmd, Call& call) {
  if (cl().clGetKernelSubGroupInfo == nullptr) return CL_INVALID_OPERATION;
  if (cmd.room() > 3 * sizeof(size_t)) return CL_INVALID_VALUE;
  const auto ask = [&](cl_kernel kernel, cl_uint param, size_t size, void* value,
                       size_t* size_ret) {
    return cl().clGetKernelSubGroupInfo(
        kernel, DeviceOfKernel(session, cmd), param, cmd.input().size(),
        cmd.input().empty() ? nullptr : cmd.input().data(), size, value, size_ret);
  };
  if (!cmd.has_room()) return Read<KernelObject>(session, cmd, call, ask);
  KernelObject* const kernel = session.objects().Peek<KernelObject>(cmd.id());
  if (kernel == nullptr) return CL_INVALID_KERNEL;
  size_t sizes[3] = {};
  size_t bytes = 0;
  const cl_int status = ask(kernel->handle.get(), cmd.param_name(), cmd.room(),
                            cmd.room() != 0 ? sizes : nullptr, &bytes);
  if (status != CL_SUCCESS) return status;
  call.answer.set_data(sizes, std::min(bytes, sizeof(sizes)));
  return CL_SUCCESS;
}

}  // namespace

HandlerResult HandleGetInfo(Session& session, const pb::GetInfo& cmd, Call& call) {
  if (IsHandle(cmd.param_name())) return CL_INVALID_VALUE;
  switch (cmd.kind()) {
    case pb::GetInfo::DEVICE: {
      DeviceObject* const device = session.objects().Peek<DeviceObject>(cmd.id());
      if (device == nullptr) return CL_INVALID_DEVICE;
      return ReadInfo(
          [&](size_t size, void* value, size_t* size_ret) {
            return cl().clGetDeviceInfo(device->handle, cmd.param_name(), size, value, size_ret);
          },
          call.answer.mutable_data());
    }
    case pb::GetInfo::CONTEXT:
      return Read<ContextObject>(session, cmd, call, cl().clGetContextInfo);
    case pb::GetInfo::QUEUE:
      return Read<QueueObject>(session, cmd, call, cl().clGetCommandQueueInfo);
    case pb::GetInfo::MEMORY:
      return Read<MemoryObject>(session, cmd, call, cl().clGetMemObjectInfo);
    case pb::GetInfo::IMAGE:
      return Read<MemoryObject>(session, cmd, call, cl().clGetImageInfo);
    case pb::GetInfo::PIPE:
      if (cl().clGetPipeInfo == nullptr) return CL_INVALID_OPERATION;
      return Read<MemoryObject>(session, cmd, call, cl().clGetPipeInfo);
    case pb::GetInfo::SAMPLER:
      return Read<SamplerObject>(session, cmd, call, cl().clGetSamplerInfo);
    case pb::GetInfo::PROGRAM:
      if (cmd.param_name() == CL_PROGRAM_BINARIES || cmd.param_name() == CL_PROGRAM_BINARY_SIZES)
        return ReadBinaries(session, cmd, call);
      return Read<ProgramObject>(session, cmd, call, cl().clGetProgramInfo);
    case pb::GetInfo::PROGRAM_BUILD:
      return Read<ProgramObject>(
          session, cmd, call,
          [&](cl_program program, cl_uint param, size_t size, void* value, size_t* size_ret) {
            return cl().clGetProgramBuildInfo(program, DeviceOfProgram(session, cmd), param, size,
                                              value, size_ret);
          });
    case pb::GetInfo::KERNEL:
      return Read<KernelObject>(session, cmd, call, cl().clGetKernelInfo);
    case pb::GetInfo::KERNEL_ARG: {
      auto kernel = session.objects().Find<KernelObject>(cmd.id());
      if (kernel != nullptr && kernel->program->arg_info_asked != ArgInfoAsked::kYes)
        return ReadUnaskedKernelArg(session, cmd, call, std::move(kernel));
      return Read<KernelObject>(
          session, cmd, call,
          [&](cl_kernel handle, cl_uint param, size_t size, void* value, size_t* size_ret) {
            return cl().clGetKernelArgInfo(handle, cmd.index(), param, size, value, size_ret);
          });
    }
    case pb::GetInfo::KERNEL_WORK_GROUP:
      return Read<KernelObject>(
          session, cmd, call,
          [&](cl_kernel kernel, cl_uint param, size_t size, void* value, size_t* size_ret) {
            return cl().clGetKernelWorkGroupInfo(kernel, DeviceOfKernel(session, cmd), param, size,
                                                 value, size_ret);
          });
    case pb::GetInfo::KERNEL_SUB_GROUP:
      return ReadSubGroupInfo(session, cmd, call);
    case pb::GetInfo::EVENT:
      return Read<EventObject>(session, cmd, call, cl().clGetEventInfo);
    case pb::GetInfo::EVENT_PROFILING:
      return Read<EventObject>(session, cmd, call, cl().clGetEventProfilingInfo);
    default:
      return absl::InvalidArgumentError("query of a kind this daemon does not know");
  }
}

}  // namespace sluice::worker
