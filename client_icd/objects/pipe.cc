// SPDX-License-Identifier: Apache-2.0
// Pipes: memory objects that only kernels touch. Their creation and queries.
#include "client_icd/base/api.h"
#include "client_icd/objects/memory.h"

namespace sluice::client {
namespace {

bool SupportsPipes(const Context& context) {
  for (const Device* device : context.devices()) {
    if (device->info().Scalar<cl_uint>(CL_DEVICE_MAX_PIPE_ARGS, 0) > 0) return true;
  }
  return false;
}

// Section 5.4.1: CL_INVALID_PIPE_SIZE if pipe_packet_size is 0 or exceeds
// CL_DEVICE_PIPE_MAX_PACKET_SIZE for all devices in context, or if pipe_max_packets is 0.
cl_int CheckPipeSize(const Context& context, cl_uint packet_size, cl_uint max_packets) {
  if (packet_size == 0 || max_packets == 0) return CL_INVALID_PIPE_SIZE;
  for (const Device* device : context.devices()) {
    if (packet_size <= device->info().Scalar<cl_uint>(CL_DEVICE_PIPE_MAX_PACKET_SIZE, 0))
      return CL_SUCCESS;
  }
  return CL_INVALID_PIPE_SIZE;
}

}  // namespace

cl_int MemObject::GetPipeInfo(cl_pipe_info param_name, const InfoSink& sink) {
  switch (param_name) {
    case CL_PIPE_PACKET_SIZE:
      return sink.Value<cl_uint>(about_.pipe->packet_size);
    case CL_PIPE_MAX_PACKETS:
      return sink.Value<cl_uint>(about_.pipe->max_packets);
    case CL_PIPE_PROPERTIES:
      return sink.Array(about_.properties.WithTerminator());
    default:
      return WireInfo(session(), {pb::GetInfo::PIPE, id(), param_name}, sink);
  }
}

namespace api {

cl_mem CL_API_CALL clCreatePipe(cl_context context_handle, cl_mem_flags flags,
                                cl_uint pipe_packet_size, cl_uint pipe_max_packets,
                                const cl_pipe_properties* properties,
                                cl_int* errcode_ret) noexcept {
  Context* context = Context::From(context_handle);
  if (context == nullptr) return Fail(errcode_ret, CL_INVALID_CONTEXT);
  // Section 5.4.1: CL_INVALID_OPERATION if no devices in context support pipes.
  if (!SupportsPipes(*context)) return Fail(errcode_ret, CL_INVALID_OPERATION);
  // CL_INVALID_VALUE if values specified in flags are not as defined (only CL_MEM_READ_WRITE and
  // CL_MEM_HOST_NO_ACCESS), or if properties is not NULL.
  const cl_mem_flags known = CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS;
  if ((flags & ~known) != 0 || properties != nullptr) return Fail(errcode_ret, CL_INVALID_VALUE);
  cl_int status = CheckPipeSize(*context, pipe_packet_size, pipe_max_packets);
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  MemObject::Description about;
  about.type = CL_MEM_OBJECT_PIPE;
  // If the value specified for flags is 0, the default is used, which is CL_MEM_READ_WRITE |
  // CL_MEM_HOST_NO_ACCESS.
  about.flags = flags != 0 ? flags : known;
  about.pipe = PipeShape{pipe_packet_size, pipe_max_packets};
  auto memory = Ref<MemObject>::Adopt(new MemObject(Ref<Context>(context), std::move(about)));
  ScopedCommand command;
  pb::CreatePipe& body = *command->mutable_create_pipe();
  body.set_mem_id(memory->id());
  body.set_context_id(context->id());
  body.set_flags(flags);
  body.set_packet_size(pipe_packet_size);
  body.set_max_packets(pipe_max_packets);
  // Only the driver knows how many packets a device has room for.
  status = context->Create(*command, {}, {.needs_answer = true});
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  memory->SetMade({});
  Succeed(errcode_ret);
  return memory.Detach()->handle();
}

cl_int CL_API_CALL clGetPipeInfo(cl_mem pipe_handle, cl_pipe_info param_name,
                                 size_t param_value_size, void* param_value,
                                 size_t* param_value_size_ret) noexcept {
  MemObject* pipe = MemObject::FromPipe(pipe_handle);
  if (pipe == nullptr) return CL_INVALID_MEM_OBJECT;
  return pipe->GetPipeInfo(param_name,
                           InfoSink(param_value_size, param_value, param_value_size_ret));
}

}  // namespace api
}  // namespace sluice::client
