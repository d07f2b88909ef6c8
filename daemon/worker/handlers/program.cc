// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/worker/handlers/handlers.h"
#include "daemon/worker/info_reader.h"
#include "daemon/worker/programs/include_folder.h"
#include "daemon/worker/programs/kernel_description.h"

namespace sluice::worker {
namespace {

using Devices = std::vector<std::shared_ptr<DeviceObject>>;

// Those that the context has: another driver's would be no handle to this one.
bool FindDevices(Session& session, const ContextObject& context,
                 const google::protobuf::RepeatedField<uint64_t>& ids, Devices* out) {
  for (const uint64_t id : ids) {
    auto device = session.objects().Find<DeviceObject>(id);
    if (device == nullptr || !context.Has(*device)) return false;
    out->push_back(std::move(device));
  }
  return true;
}

// An input of a compilation or a link; null also if it is another context's.
std::shared_ptr<ProgramObject> FindInput(Session& session, const ContextObject& context,
                                         uint64_t id) {
  auto program = session.objects().Find<ProgramObject>(id);
  const bool good = program != nullptr && program->handle && program->context.get() == &context;
  return good ? program : nullptr;
}

std::vector<cl_device_id> HandlesOf(const Devices& devices) {
  std::vector<cl_device_id> handles;
  for (const auto& device : devices) handles.push_back(device->handle);
  return handles;
}

bool HasBuiltInKernels(cl_device_id device) {
  std::string names;
  const cl_int status = ReadInfo(
      [device](size_t size, void* value, size_t* size_ret) {
        return cl().clGetDeviceInfo(device, CL_DEVICE_BUILT_IN_KERNELS, size, value, size_ret);
      },
      &names);
  return status == CL_SUCCESS && names.size() > 1;  // With its NUL.
}

// True if some of its kernels may print, as far as their text tells: a macro may put the name
// together from parts. Asked in a pool alone (pool/printing_turns.h).
bool MayPrint(const Session& session, std::string_view text) {
  if (session.options().pool == nullptr) return false;
  return text.find("printf") != text.npos || text.find("##") != text.npos;
}

// Of the options and included files of a build.
template <typename Body>
bool BuildMayPrint(const Session& session, const Body& cmd) {
  return MayPrint(session, cmd.options()) ||
         std::any_of(cmd.include_files().begin(), cmd.include_files().end(),
                     [&session](const pb::IncludeFile& file) {
                       return MayPrint(session, file.contents());
                     });
}

// Registers a program that the driver has made.
cl_int AddProgram(Session& session, uint64_t id, std::shared_ptr<ContextObject> context,
                  UniqueCl<cl_program> handle, bool may_print, Devices devices = {},
                  std::shared_ptr<const pb::ProgramRecord> record = nullptr) {
  auto program = std::make_shared<ProgramObject>();
  program->may_print = may_print;
  program->record = std::move(record);
  program->id = id;
  program->handle = std::move(handle);
  program->devices = devices.empty() ? context->devices : std::move(devices);
  program->context = std::move(context);
  return session.Add(id, std::move(program));
}

void DescribeState(const ProgramObject& program, pb::ProgramState* state) {
  for (const auto& device : program.devices) {
    pb::ProgramState::Device& entry = *state->add_devices();
    cl_build_status build_status = CL_BUILD_NONE;
    cl_program_binary_type binary_type = CL_PROGRAM_BINARY_TYPE_NONE;
    cl().clGetProgramBuildInfo(program.handle.get(), device->handle, CL_PROGRAM_BUILD_STATUS,
                               sizeof(build_status), &build_status, nullptr);
    cl().clGetProgramBuildInfo(program.handle.get(), device->handle, CL_PROGRAM_BINARY_TYPE,
                               sizeof(binary_type), &binary_type, nullptr);
    entry.set_device_id(device->id);
    entry.set_build_status(build_status);
    entry.set_binary_type(binary_type);
  }
}

// With what the build thread has put into `reply`.
void SendAnswer(Session& session, uint64_t sequence, cl_int status, const ProgramObject* program,
                pb::Reply& reply) {
  pb::Answer& answer = *reply.mutable_answer();
  answer.set_sequence(sequence);
  answer.set_status(status);
  if (program != nullptr) {
    answer.mutable_program()->set_program_made(true);
    DescribeState(*program, answer.mutable_program());
  }
  // A build may have a callback of the application, for which nobody waits.
  session.replies().Send(reply, wire::Wake::kUrgent);
}

// The answer to a build that was given up: that of one that failed, with the reason in the log. The
// driver is still at it, and is not asked.
void SendGivenUp(Session& session, uint64_t sequence, cl_int status, const Devices& devices,
                 const std::string& why) {
  pb::Reply reply;
  pb::Answer& answer = *reply.mutable_answer();
  answer.set_sequence(sequence);
  answer.set_status(status);
  for (const auto& device : devices) {
    pb::ProgramState::Device& entry = *answer.mutable_program()->add_devices();
    entry.set_device_id(device->id);
    entry.set_build_status(CL_BUILD_ERROR);
    entry.set_binary_type(CL_PROGRAM_BINARY_TYPE_NONE);
    entry.set_log(why);
  }
  session.replies().Send(reply, wire::Wake::kUrgent);
}

// Has the build thread run `build`, which returns its status, and answers when it has ended. The
// program is told of in the answer if it exists by then.
template <typename F>
HandlerResult RunBuild(Session& session, const Call& call, std::shared_ptr<ProgramObject> program,
                       Devices devices, cl_int failure, F build) {
  Builds::Work work;
  work.run = [&session, sequence = call.sequence(), program, asked = program->arg_info_asked,
              build = std::move(build)] {
    const cl_int status = build();
    const auto reply = std::make_shared<pb::Reply>();
    if (status == CL_SUCCESS && program->handle)
      DescribeKernels(*program, asked, reply->mutable_answer());
    return [&session, sequence, program, status, reply] {
      SendAnswer(session, sequence, status, program->handle ? program.get() : nullptr, *reply);
    };
  };
  if (devices.empty()) devices = program->devices;
  work.give_up = [&session, sequence = call.sequence(), devices = std::move(devices),
                  failure](const std::string& why) {
    SendGivenUp(session, sequence, failure, devices, why);
  };
  if (!session.builds().Post(std::move(work))) return CL_OUT_OF_RESOURCES;
  return HandlerResult::Later();
}

constexpr char kArgInfoOption[] = "-cl-kernel-arg-info";

// Of empty options, which are not none, the client makes a blank.
ArgInfoAsked AskedByOptions(const std::string& options) {
  if (absl::StrContains(options, kArgInfoOption)) return ArgInfoAsked::kYes;
  return options.empty() ? ArgInfoAsked::kWithoutOptions : ArgInfoAsked::kNo;
}

// How the application is to be told the argument information of what it builds. Of a binary:
// drivers tell what its maker asked for.
ArgInfoAsked AskedByBuild(const ProgramObject& program, const std::string& options) {
  size_t source_size = 0;
  cl().clGetProgramInfo(program.handle.get(), CL_PROGRAM_SOURCE, 0, nullptr, &source_size);
  return source_size <= 1 ? ArgInfoAsked::kYes : AskedByOptions(options);  // With its NUL.
}

// Argument information is what the client judges clSetKernelArg by; drivers keep it only if asked
// to. A driver may not build a source in which one kernel has no arguments when it is asked
// ("ptxas: Parsing error near '}'"). A build that fails with the question is tried again without
// it, and that outcome, its log included, is told.
template <typename Build>
cl_int BuildWithArgInfo(const std::string& options, const Build& build) {
  if (absl::StrContains(options, kArgInfoOption)) return build(options);
  const cl_int status = build(absl::StrCat(options, " ", kArgInfoOption));
  const bool failed = status == CL_BUILD_PROGRAM_FAILURE || status == CL_COMPILE_PROGRAM_FAILURE;
  return failed ? build(options) : status;
}

// The files go to the disk: they are bounded as sources are.
bool IncludesFit(const Session& session,
                 const google::protobuf::RepeatedPtrField<pb::IncludeFile>& files) {
  uint64_t bytes = 0;
  for (const pb::IncludeFile& file : files) bytes += file.contents().size();
  return bytes <= session.options().limits.program_bytes;
}

}  // namespace

HandlerResult HandleCreateProgramWithSource(Session& session,
                                            const pb::CreateProgramWithSource& cmd, Call& call) {
  auto context = session.objects().Find<ContextObject>(cmd.context_id());
  if (context == nullptr) return CL_INVALID_CONTEXT;
  const std::string_view source = call.frame.payload();
  if (source.size() > session.options().limits.program_bytes) return CL_OUT_OF_HOST_MEMORY;
  if (source.find("printf") != source.npos || source.find("include") != source.npos)
    session.printf().Expect();
  const char* const text = source.empty() ? "" : source.data();
  const size_t length = source.size();
  cl_int status = CL_SUCCESS;
  UniqueCl<cl_program> program(cl().clCreateProgramWithSource(
      context->handle.get(), 1, const_cast<const char**>(&text), &length, &status));
  if (status != CL_SUCCESS) return status;
  return AddProgram(session, cmd.program_id(), std::move(context), std::move(program),
                    MayPrint(session, source));
}

HandlerResult HandleCreateProgramWithBinary(Session& session,
                                            const pb::CreateProgramWithBinary& cmd, Call& call) {
  auto context = session.objects().Find<ContextObject>(cmd.context_id());
  if (context == nullptr) return CL_INVALID_CONTEXT;
  Devices devices;
  if (!FindDevices(session, *context, cmd.device_ids(), &devices)) return CL_INVALID_DEVICE;
  const std::string_view payload = call.frame.payload();
  if (payload.size() > session.options().limits.program_bytes) return CL_OUT_OF_HOST_MEMORY;
  if (cmd.sizes_size() != cmd.device_ids_size())
    return absl::InvalidArgumentError("binaries do not match devices");
  std::vector<const unsigned char*> binaries;
  std::vector<size_t> sizes;
  uint64_t at = 0;
  for (const uint64_t size : cmd.sizes()) {
    if (size > payload.size() - at)
      return absl::InvalidArgumentError("binaries exceed the payload");
    binaries.push_back(reinterpret_cast<const unsigned char*>(payload.data()) + at);
    sizes.push_back(size);
    at += size;
  }
  session.printf().Expect();
  std::vector<cl_int> statuses(devices.size(), CL_SUCCESS);
  const std::vector<cl_device_id> handles = HandlesOf(devices);
  cl_int status = CL_SUCCESS;
  UniqueCl<cl_program> program(cl().clCreateProgramWithBinary(
      context->handle.get(), static_cast<cl_uint>(handles.size()), handles.data(), sizes.data(),
      binaries.data(), statuses.data(), &status));
  call.answer.set_data(statuses.data(), statuses.size() * sizeof(statuses[0]));
  if (status != CL_SUCCESS) return status;
  std::shared_ptr<const pb::ProgramRecord> record;
  for (size_t i = 0; i < binaries.size() && record == nullptr; ++i) {
    record =
        session.argument_records().Find({reinterpret_cast<const char*>(binaries[i]), sizes[i]});
  }
  // Drivers' binaries name the function that prints, whatever their form.
  return AddProgram(session, cmd.program_id(), std::move(context), std::move(program),
                    session.options().pool != nullptr && payload.find("printf") != payload.npos,
                    std::move(devices), std::move(record));
}

HandlerResult HandleCreateProgramWithIl(Session& session, const pb::CreateProgramWithIl& cmd,
                                        Call& call) {
  auto context = session.objects().Find<ContextObject>(cmd.context_id());
  if (context == nullptr) return CL_INVALID_CONTEXT;
  if (cl().clCreateProgramWithIL == nullptr) return CL_INVALID_OPERATION;
  const std::string_view il = call.frame.payload();
  if (il.size() > session.options().limits.program_bytes) return CL_OUT_OF_HOST_MEMORY;
  session.printf().Expect();
  cl_int status = CL_SUCCESS;
  UniqueCl<cl_program> program(
      cl().clCreateProgramWithIL(context->handle.get(), il.data(), il.size(), &status));
  if (status != CL_SUCCESS) return status;
  // It has an instruction for that, and no name.
  return AddProgram(session, cmd.program_id(), std::move(context), std::move(program),
                    /*may_print=*/true);
}

HandlerResult HandleCreateProgramWithBuiltInKernels(Session& session,
                                                    const pb::CreateProgramWithBuiltInKernels& cmd,
                                                    Call&) {
  auto context = session.objects().Find<ContextObject>(cmd.context_id());
  if (context == nullptr) return CL_INVALID_CONTEXT;
  Devices devices;
  if (!FindDevices(session, *context, cmd.device_ids(), &devices)) return CL_INVALID_DEVICE;
  const std::vector<cl_device_id> handles = HandlesOf(devices);
  // "CL_INVALID_VALUE if ... kernel_names contains a kernel name that is not supported by any of
  // the devices" (section 5.8.1). A driver without any may lack the function and crash.
  if (std::none_of(handles.begin(), handles.end(), &HasBuiltInKernels)) return CL_INVALID_VALUE;
  cl_int status = CL_SUCCESS;
  UniqueCl<cl_program> program(cl().clCreateProgramWithBuiltInKernels(
      context->handle.get(), static_cast<cl_uint>(handles.size()), handles.data(),
      cmd.names().c_str(), &status));
  if (status != CL_SUCCESS) return status;
  return AddProgram(session, cmd.program_id(), std::move(context), std::move(program),
                    /*may_print=*/false, std::move(devices));
}

HandlerResult HandleBuildProgram(Session& session, const pb::BuildProgram& cmd, Call& call) {
  auto program = session.objects().Find<ProgramObject>(cmd.program_id());
  if (program == nullptr || !program->handle) return CL_INVALID_PROGRAM;
  if (!IncludesFit(session, cmd.include_files())) return CL_OUT_OF_HOST_MEMORY;
  Devices devices;
  if (!FindDevices(session, *program->context, cmd.device_ids(), &devices))
    return CL_INVALID_DEVICE;
  auto folder = std::make_shared<IncludeFolder>();
  std::string options;
  if (absl::Status status = folder->LayOut(cmd, &options); !status.ok()) return status;
  program->arg_info_asked = AskedByBuild(*program, options);
  program->may_print = program->may_print || BuildMayPrint(session, cmd);
  return RunBuild(session, call, program, devices, CL_BUILD_PROGRAM_FAILURE,
                  [program, devices, folder, options] {
                    const std::vector<cl_device_id> handles = HandlesOf(devices);
                    return BuildWithArgInfo(options, [&](const std::string& all) {
                      return cl().clBuildProgram(program->handle.get(),
                                                 static_cast<cl_uint>(handles.size()),
                                                 handles.empty() ? nullptr : handles.data(),
                                                 all.c_str(), nullptr, nullptr);
                    });
                  });
}

HandlerResult HandleCompileProgram(Session& session, const pb::CompileProgram& cmd, Call& call) {
  auto program = session.objects().Find<ProgramObject>(cmd.program_id());
  if (program == nullptr || !program->handle) return CL_INVALID_PROGRAM;
  if (!IncludesFit(session, cmd.include_files())) return CL_OUT_OF_HOST_MEMORY;
  Devices devices;
  if (!FindDevices(session, *program->context, cmd.device_ids(), &devices))
    return CL_INVALID_DEVICE;
  if (cmd.header_ids_size() != cmd.header_names_size())
    return absl::InvalidArgumentError("headers do not match names");
  std::vector<std::shared_ptr<ProgramObject>> headers;
  for (const uint64_t id : cmd.header_ids()) {
    headers.push_back(FindInput(session, *program->context, id));
    if (headers.back() == nullptr) return CL_INVALID_PROGRAM;
  }
  auto folder = std::make_shared<IncludeFolder>();
  std::string options;
  if (absl::Status status = folder->LayOut(cmd, &options); !status.ok()) return status;
  program->arg_info_asked = AskedByBuild(*program, options);
  program->may_print = program->may_print || BuildMayPrint(session, cmd);
  for (const auto& header : headers) program->may_print |= header->may_print;
  std::vector<std::string> names(cmd.header_names().begin(), cmd.header_names().end());
  return RunBuild(session, call, program, devices, CL_COMPILE_PROGRAM_FAILURE,
                  [program, devices, headers, names, folder, options] {
                    const std::vector<cl_device_id> handles = HandlesOf(devices);
                    std::vector<cl_program> header_handles;
                    std::vector<const char*> header_names;
                    for (size_t i = 0; i < headers.size(); ++i) {
                      header_handles.push_back(headers[i]->handle.get());
                      header_names.push_back(names[i].c_str());
                    }
                    return BuildWithArgInfo(options, [&](const std::string& all) {
                      return cl().clCompileProgram(
                          program->handle.get(), static_cast<cl_uint>(handles.size()),
                          handles.empty() ? nullptr : handles.data(), all.c_str(),
                          static_cast<cl_uint>(headers.size()),
                          headers.empty() ? nullptr : header_handles.data(),
                          headers.empty() ? nullptr : header_names.data(), nullptr, nullptr);
                    });
                  });
}

HandlerResult HandleLinkProgram(Session& session, const pb::LinkProgram& cmd, Call& call) {
  auto context = session.objects().Find<ContextObject>(cmd.context_id());
  if (context == nullptr) return CL_INVALID_CONTEXT;
  Devices devices;
  if (!FindDevices(session, *context, cmd.device_ids(), &devices)) return CL_INVALID_DEVICE;
  std::vector<std::shared_ptr<ProgramObject>> inputs;
  for (const uint64_t id : cmd.input_ids()) {
    inputs.push_back(FindInput(session, *context, id));
    if (inputs.back() == nullptr) return CL_INVALID_PROGRAM;
  }
  // The object is there before the link ends; only the build thread touches its handle until the
  // answer is sent, and the client names the program only after that.
  auto program = std::make_shared<ProgramObject>();
  program->id = cmd.program_id();
  program->devices = devices.empty() ? context->devices : devices;
  program->context = context;
  // Some drivers go by the link's options, others by those of the compilations.
  program->arg_info_asked = AskedByOptions(cmd.options());
  for (const auto& input : inputs)
    program->arg_info_asked = std::min(program->arg_info_asked, input->arg_info_asked);
  for (const auto& input : inputs) program->may_print |= input->may_print;
  if (const cl_int added = session.Add(cmd.program_id(), program); added != CL_SUCCESS)
    return added;
  return RunBuild(
      session, call, program, devices, CL_LINK_PROGRAM_FAILURE,
      [program, context, devices, inputs, options = cmd.options()] {
        const std::vector<cl_device_id> handles = HandlesOf(devices);
        std::vector<cl_program> input_handles;
        input_handles.reserve(inputs.size());
        for (const auto& input : inputs) input_handles.push_back(input->handle.get());
        cl_int status = CL_SUCCESS;
        program->handle = UniqueCl<cl_program>(cl().clLinkProgram(
            context->handle.get(), static_cast<cl_uint>(handles.size()),
            handles.empty() ? nullptr : handles.data(), options.empty() ? nullptr : options.c_str(),
            static_cast<cl_uint>(input_handles.size()), input_handles.data(), nullptr, nullptr,
            &status));
        return status;
      });
}

HandlerResult HandleSetProgramSpecializationConstant(
    Session& session, const pb::SetProgramSpecializationConstant& cmd, Call&) {
  ProgramObject* const program = session.objects().Peek<ProgramObject>(cmd.program_id());
  if (program == nullptr || !program->handle) return CL_INVALID_PROGRAM;
  if (cl().clSetProgramSpecializationConstant == nullptr) return CL_INVALID_OPERATION;
  return cl().clSetProgramSpecializationConstant(program->handle.get(), cmd.spec_id(),
                                                 cmd.value().size(), cmd.value().data());
}

}  // namespace sluice::worker
