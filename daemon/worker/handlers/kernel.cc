// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <type_traits>

#include "daemon/worker/handlers/handlers.h"
#include "daemon/worker/programs/kernel_description.h"
#include "daemon/worker/queues/enqueuer.h"
#include "proto/codec.h"
#include "proto/status_macros.h"

namespace sluice::worker {
namespace {

// A value where the kernel takes a handle would be a pointer of the client's for the driver to
// follow. A handle where it takes a value would be a pointer of ours for the client to read.
bool KindTakes(int kind, pb::KernelArg::ValueCase value) {
  switch (kind) {
    case pb::KernelArgDescription::UNKNOWN:
      return true;
    case pb::KernelArgDescription::VALUE:
      return value == pb::KernelArg::kData;
    case pb::KernelArgDescription::LOCAL:
      return value == pb::KernelArg::kLocalBytes;
    default:
      return value != pb::KernelArg::kData && value != pb::KernelArg::kLocalBytes;
  }
}

template <typename T>
cl_int SetHandleArg(Session& session, const KernelObject& kernel, cl_uint index, uint64_t id) {
  T* const object = session.objects().Peek<T>(id);
  if (object == nullptr || object->context != kernel.program->context) return T::kInvalid;
  if constexpr (std::is_same_v<T, MemoryObject>) {
    // The driver may keep it for the kernel, beyond the object that owes the zeros.
    const cl_int paid = object->owes_zeros ? PayZeros(object->context.get()) : CL_SUCCESS;
    if (paid != CL_SUCCESS) return paid;
  }
  const auto handle = object->handle.get();
  return cl().clSetKernelArg(kernel.handle.get(), index, sizeof(handle), &handle);
}

cl_int PassArg(Session& session, const KernelObject& object, const pb::KernelArg& arg) {
  if (arg.index() >= object.arg_kinds.size()) return CL_INVALID_ARG_INDEX;
  if (!KindTakes(object.arg_kinds[arg.index()], arg.value_case())) return CL_INVALID_ARG_VALUE;
  const cl_kernel kernel = object.handle.get();
  switch (arg.value_case()) {
    case pb::KernelArg::kData:
      return cl().clSetKernelArg(kernel, arg.index(), arg.data().size(), arg.data().data());
    case pb::KernelArg::kMemId:
      if (arg.mem_id() == 0)
        return cl().clSetKernelArg(kernel, arg.index(), sizeof(cl_mem), nullptr);
      return SetHandleArg<MemoryObject>(session, object, arg.index(), arg.mem_id());
    case pb::KernelArg::kSamplerId:
      return SetHandleArg<SamplerObject>(session, object, arg.index(), arg.sampler_id());
    case pb::KernelArg::kQueueId:
      return SetHandleArg<QueueObject>(session, object, arg.index(), arg.queue_id());
    case pb::KernelArg::kLocalBytes:
      return cl().clSetKernelArg(kernel, arg.index(), arg.local_bytes(), nullptr);
    case pb::KernelArg::kSvmPointer:
      if (cl().clSetKernelArgSVMPointer == nullptr) return CL_INVALID_OPERATION;
      if (arg.svm_pointer() != 0 && session.objects().SvmPointer(arg.svm_pointer(), 1) == nullptr) {
        return CL_INVALID_ARG_VALUE;
      }
      return cl().clSetKernelArgSVMPointer(kernel, arg.index(),
                                           reinterpret_cast<void*>(arg.svm_pointer()));
    case pb::KernelArg::VALUE_NOT_SET:
      break;
  }
  return CL_INVALID_ARG_VALUE;
}

cl_int SetArg(Session& session, KernelObject* kernel, const pb::KernelArg& arg) {
  const cl_int status = session.objects().CodeFor(PassArg(session, *kernel, arg));
  if (status == CL_SUCCESS) kernel->refused_args.erase(arg.index());
  return status;
}

// All are applied, also after one was refused: the client counts them as sent. A refusal is the
// answer, to later launches too, until that argument is set again.
cl_int ApplyArgs(Session& session, KernelObject* kernel,
                 const google::protobuf::RepeatedPtrField<pb::KernelArg>& args) {
  for (const pb::KernelArg& arg : args) {
    const cl_int status = SetArg(session, kernel, arg);
    if (status != CL_SUCCESS && arg.index() < kernel->arg_kinds.size())
      kernel->refused_args[arg.index()] = status;
    if (status != CL_SUCCESS && arg.index() >= kernel->arg_kinds.size()) return status;
  }
  return kernel->refused_args.empty() ? CL_SUCCESS : kernel->refused_args.begin()->second;
}

cl_int AddKernel(Session& session, uint64_t id, std::shared_ptr<ProgramObject> program,
                 UniqueCl<cl_kernel> handle, Call& call) {
  auto kernel = std::make_shared<KernelObject>();
  kernel->id = id;
  kernel->handle = std::move(handle);
  kernel->program = std::move(program);
  pb::KernelDescription& description = *call.answer.add_kernels();
  DescribeKernel(kernel->handle.get(), *kernel->program, kernel->program->arg_info_asked,
                 &description);
  for (const auto& arg : description.args()) kernel->arg_kinds.push_back(arg.kind());
  return session.Add(id, std::move(kernel));
}

}  // namespace

HandlerResult HandleCreateKernel(Session& session, const pb::CreateKernel& cmd, Call& call) {
  auto program = session.objects().Find<ProgramObject>(cmd.program_id());
  if (program == nullptr || !program->handle) return CL_INVALID_PROGRAM;
  cl_int status = CL_SUCCESS;
  UniqueCl<cl_kernel> kernel(
      cl().clCreateKernel(program->handle.get(), cmd.name().c_str(), &status));
  if (status != CL_SUCCESS) return status;
  return AddKernel(session, cmd.kernel_id(), std::move(program), std::move(kernel), call);
}

HandlerResult HandleCreateKernelsInProgram(Session& session, const pb::CreateKernelsInProgram& cmd,
                                           Call& call) {
  auto program = session.objects().Find<ProgramObject>(cmd.program_id());
  if (program == nullptr || !program->handle) return CL_INVALID_PROGRAM;
  cl_uint count = 0;
  cl_int status = cl().clCreateKernelsInProgram(program->handle.get(), 0, nullptr, &count);
  if (status != CL_SUCCESS) return status;
  call.answer.set_count(count);
  if (cmd.max_kernels() == 0) return CL_SUCCESS;
  if (cmd.max_kernels() < count) return CL_INVALID_VALUE;  // Section 5.9.1.
  std::vector<cl_kernel> handles(count);
  status = cl().clCreateKernelsInProgram(program->handle.get(), count, handles.data(), nullptr);
  if (status != CL_SUCCESS) return status;
  for (cl_uint i = 0; i < count; ++i) {
    const cl_int added =
        AddKernel(session, cmd.first_id() + i, program, UniqueCl<cl_kernel>(handles[i]), call);
    if (status == CL_SUCCESS) status = added;
  }
  return status;
}

HandlerResult HandleCloneKernel(Session& session, const pb::CloneKernel& cmd, Call& call) {
  KernelObject* const source = session.objects().Peek<KernelObject>(cmd.source_id());
  if (source == nullptr) return CL_INVALID_KERNEL;
  cl_int status = CL_INVALID_OPERATION;
  UniqueCl<cl_kernel> kernel;
  if (cl().clCloneKernel != nullptr)
    kernel.reset(cl().clCloneKernel(source->handle.get(), &status));
  if (status != CL_SUCCESS) return status;
  return AddKernel(session, cmd.kernel_id(), source->program, std::move(kernel), call);
}

HandlerResult HandleCheckKernelArg(Session& session, const pb::CheckKernelArg& cmd, Call&) {
  KernelObject* const kernel = session.objects().Peek<KernelObject>(cmd.kernel_id());
  if (kernel == nullptr) return CL_INVALID_KERNEL;
  return SetArg(session, kernel, cmd.arg());
}

HandlerResult HandleSetKernelExecInfo(Session& session, const pb::SetKernelExecInfo& cmd, Call&) {
  KernelObject* const kernel = session.objects().Peek<KernelObject>(cmd.kernel_id());
  if (kernel == nullptr) return CL_INVALID_KERNEL;
  if (cl().clSetKernelExecInfo == nullptr) return CL_INVALID_OPERATION;
  if (cmd.param_name() == CL_KERNEL_EXEC_INFO_SVM_PTRS) {
    for (size_t at = 0; at + sizeof(uint64_t) <= cmd.value().size(); at += sizeof(uint64_t)) {
      uint64_t address = 0;
      std::memcpy(&address, cmd.value().data() + at, sizeof(address));
      if (session.objects().SvmPointer(address, 1) == nullptr) return CL_INVALID_VALUE;
    }
  }
  if (!cmd.value().empty()) {
    return cl().clSetKernelExecInfo(kernel->handle.get(), cmd.param_name(), cmd.value().size(),
                                    cmd.value().data());
  }
  // Of pointers: most drivers know that set by its NULL, one that refuses that by its size.
  const void* const none = nullptr;
  cl_int status = cl().clSetKernelExecInfo(kernel->handle.get(), cmd.param_name(), 0, nullptr);
  if (status == CL_INVALID_VALUE)
    status = cl().clSetKernelExecInfo(kernel->handle.get(), cmd.param_name(), 0, &none);
  return status;
}

HandlerResult HandleGetKernelSuggestedLocalWorkSize(Session& session,
                                                    const pb::GetKernelSuggestedLocalWorkSize& cmd,
                                                    Call& call) {
  KernelObject* const kernel = session.objects().Peek<KernelObject>(cmd.kernel_id());
  if (kernel == nullptr) return CL_INVALID_KERNEL;
  // First of all: the client takes them for told, whatever becomes of this command.
  const cl_int applied = ApplyArgs(session, kernel, cmd.changed_args());
  QueueObject* const queue = session.objects().Peek<QueueObject>(cmd.queue_id());
  if (queue == nullptr) return CL_INVALID_COMMAND_QUEUE;
  if (applied != CL_SUCCESS) return applied;
  if (kernel->program->context != queue->context) return CL_INVALID_CONTEXT;
  ASSIGN_OR_RETURN(const wire::NdRange range, wire::DecodeNdRange(cmd.range()));
  const auto suggest = reinterpret_cast<clGetKernelSuggestedLocalWorkSizeKHR_fn>(
      cl().clGetExtensionFunctionAddressForPlatform(queue->device->platform,
                                                    "clGetKernelSuggestedLocalWorkSizeKHR"));
  if (suggest == nullptr) return CL_INVALID_OPERATION;
  size_t suggested[3] = {};
  const cl_int status = suggest(queue->handle.get(), kernel->handle.get(), range.work_dim,
                                range.offset_or_null(), range.global, suggested);
  if (status == CL_SUCCESS) call.answer.set_data(suggested, sizeof(suggested[0]) * range.work_dim);
  return status;
}

HandlerResult HandleEnqueueNdRangeKernel(Session& session, const pb::EnqueueNdRangeKernel& cmd,
                                         Call&) {
  KernelObject* const kernel = session.objects().Peek<KernelObject>(cmd.kernel_id());
  if (kernel == nullptr) return CL_INVALID_KERNEL;
  const cl_int applied = ApplyArgs(session, kernel, cmd.changed_args());
  Enqueuer enqueue(session, cmd.on());
  if (applied != CL_SUCCESS) return applied;
  if (!enqueue.ok()) return enqueue.answer();
  if (kernel->program->context != enqueue.queue().context) return CL_INVALID_CONTEXT;
  ASSIGN_OR_RETURN(const wire::NdRange range, wire::DecodeNdRange(cmd.range()));
  const auto launch = [&](cl_command_queue queue, cl_uint waits, const cl_event* list,
                          cl_event* event) {
    return cl().clEnqueueNDRangeKernel(queue, kernel->handle.get(), range.work_dim,
                                       range.offset_or_null(), range.global, range.local_or_null(),
                                       waits, list, event);
  };
  if (session.options().pool != nullptr && kernel->program->may_print)
    return enqueue.RunPrinting(launch);
  return enqueue.Run(launch);
}

}  // namespace sluice::worker
