// SPDX-License-Identifier: Apache-2.0
// clBuildProgram, clCompileProgram, clLinkProgram. A build is one command whose answer comes when
// it has ended. With a notify function the call does not wait: a thread of its own does, and hands
// the function to the callback thread.
#include <memory>

#include "broker/os/this_process.h"
#include "broker/os/threads.h"
#include "client_icd/base/api.h"
#include "client_icd/base/args.h"
#include "client_icd/objects/program.h"
#include "client_icd/program_headers/includes.h"

namespace sluice::client {
namespace {

struct Build {
  Ref<Program> program;
  Program::Step step;
  pb::Command command;
  Uint64List device_ids;
  std::vector<Ref<Program>> inputs;  // Live until the worker has taken the command.
  Program::Notify notify = nullptr;
  void* user_data = nullptr;

  // Waits for the worker, which also learns of the program if this is a link.
  cl_int Run() {
    pb::Answer answer;
    const cl_int status = program->stream().Call(command, {}, &answer);
    if (step == Program::Step::kLink) {
      // A link that made nothing has a name in the worker all the same.
      if (status == CL_SUCCESS || answer.program().program_made())
        program->SetMade();
      else
        program->session().ReleaseObject(program->id());
    }
    if (status == CL_SUCCESS) program->LearnKernels(answer);
    program->EndBuild(device_ids, status, answer.program());
    return status;
  }
};

void RunAndNotify(const std::shared_ptr<Build>& build) {
  build->Run();
  build->program->session().callbacks().Add(
      [program = build->program, notify = build->notify, user_data = build->user_data] {
        notify(program->handle(), user_data);
      });
}

// Begun already. With a notify function: CL_SUCCESS, and the build goes on.
cl_int RunBuild(std::unique_ptr<Build> build) {
  if (build->notify == nullptr) return build->Run();
  const std::shared_ptr<Build> shared = std::move(build);
  if (!os::StartThread("sluice-build", [shared] { RunAndNotify(shared); })) RunAndNotify(shared);
  return CL_SUCCESS;
}

// As they travel: nothing is NULL, and a blank is "", of which a driver makes something else (it
// tells no argument information of what was built so).
std::string_view OnTheWire(const char* options) {
  if (options == nullptr) return "";
  return *options == '\0' ? " " : options;
}

// Fills options and include files of a BuildProgram or CompileProgram. False if the last option
// lacks its value: a driver may crash, and whatever is put behind it become its value.
template <typename Body>
bool AddIncludes(const std::vector<std::string_view>& sources, const char* options, Body* body) {
  IncludeScan scan = ScanIncludes(sources, OnTheWire(options), os::CurrentDirectory());
  if (scan.lacks_value) return false;
  body->set_options(std::move(scan.options));
  for (FoundInclude& file : scan.files) {
    pb::IncludeFile* out = body->add_include_files();
    out->set_path(std::move(file.path));
    out->set_contents(std::move(file.contents));
  }
  for (IncludeStep& step : scan.steps) {
    pb::IncludeStep* out = body->add_include_steps();
    out->set_path(std::move(step.path));
    out->set_link_target(std::move(step.link_target));
  }
  for (std::string& directory : scan.directories)
    body->add_include_directories(std::move(directory));
  return true;
}

// A build that has begun, and of whose options the last lacks its value. Section 5.8.7: the program
// tells of it as of one that has failed.
cl_int Refuse(const Build& build, cl_int code) {
  build.program->RefuseBuild(build.device_ids,
                             "sluice: the last of the options, -I or -D, lacks its value\n");
  return code;
}

// The checks of all three calls (sections 5.8.2 to 5.8.4): CL_INVALID_VALUE if pfn_notify is NULL
// but user_data is not; the device list; whether pfn_notify can be called.
cl_int CheckCommon(Session& session, std::span<Device* const> devices, cl_uint num_devices,
                   const cl_device_id* device_list, Program::Notify notify, void* user_data,
                   Uint64List* device_ids) {
  if (notify == nullptr && user_data != nullptr) return CL_INVALID_VALUE;
  CL_RETURN_IF_ERROR(ReadDevices(num_devices, device_list, devices, device_ids));
  return notify != nullptr ? session.callbacks().Ready() : CL_SUCCESS;
}

// A program that a compilation or a link takes in. Null (CL_INVALID_PROGRAM) also for one of
// another context: that may have another session, in which the id names something else.
Program* InputFrom(cl_program handle, const Context& context) {
  Program* program = Program::From(handle);
  return program != nullptr && &program->context() == &context ? program : nullptr;
}

std::unique_ptr<Build> NewBuild(Program* program, Program::Step step, Program::Notify notify,
                                void* user_data) {
  auto build = std::make_unique<Build>();
  build->program = Ref<Program>(program);
  build->step = step;
  build->notify = notify;
  build->user_data = user_data;
  return build;
}

}  // namespace

namespace api {

cl_int CL_API_CALL clBuildProgram(cl_program program_handle, cl_uint num_devices,
                                  const cl_device_id* device_list, const char* options,
                                  void(CL_CALLBACK* pfn_notify)(cl_program program,
                                                                void* user_data),
                                  void* user_data) noexcept {
  Program* program = Program::From(program_handle);
  if (program == nullptr) return CL_INVALID_PROGRAM;
  auto build = NewBuild(program, Program::Step::kBuild, pfn_notify, user_data);
  CL_RETURN_IF_ERROR(CheckCommon(program->session(), program->devices(), num_devices, device_list,
                                 pfn_notify, user_data, &build->device_ids));
  // Section 5.8.2: CL_INVALID_OPERATION if program was not created with clCreateProgramWithSource,
  // clCreateProgramWithIL or clCreateProgramWithBinary.
  if (program->origin() == Program::Origin::kBuiltIn ||
      program->origin() == Program::Origin::kLinked) {
    return CL_INVALID_OPERATION;
  }
  pb::BuildProgram& body = *build->command.mutable_build_program();
  body.set_program_id(program->id());
  *body.mutable_device_ids() = build->device_ids;
  std::vector<std::string_view> sources;
  if (program->origin() == Program::Origin::kSource) sources.push_back(program->text());
  const bool whole = AddIncludes(sources, options, &body);
  CL_RETURN_IF_ERROR(program->BeginBuild(Program::Step::kBuild, build->device_ids,
                                         options != nullptr ? options : ""));
  // CL_INVALID_BUILD_OPTIONS if the build options specified by options are invalid.
  if (!whole) return Refuse(*build, CL_INVALID_BUILD_OPTIONS);
  return RunBuild(std::move(build));
}

cl_int CL_API_CALL clCompileProgram(
    cl_program program_handle, cl_uint num_devices, const cl_device_id* device_list,
    const char* options, cl_uint num_input_headers, const cl_program* input_headers,
    const char** header_include_names,
    void(CL_CALLBACK* pfn_notify)(cl_program program, void* user_data), void* user_data) noexcept {
  Program* program = Program::From(program_handle);
  if (program == nullptr) return CL_INVALID_PROGRAM;
  auto build = NewBuild(program, Program::Step::kCompile, pfn_notify, user_data);
  CL_RETURN_IF_ERROR(CheckCommon(program->session(), program->devices(), num_devices, device_list,
                                 pfn_notify, user_data, &build->device_ids));
  // Section 5.8.3: CL_INVALID_VALUE if num_input_headers is zero and header_include_names or
  // input_headers are not NULL, or if it is not zero and one of them is NULL.
  const bool has_headers = num_input_headers != 0;
  if (has_headers != (input_headers != nullptr) ||
      has_headers != (header_include_names != nullptr)) {
    return CL_INVALID_VALUE;
  }
  // CL_INVALID_OPERATION if program has no source or IL available.
  if (program->origin() != Program::Origin::kSource && program->origin() != Program::Origin::kIl) {
    return CL_INVALID_OPERATION;
  }
  pb::CompileProgram& body = *build->command.mutable_compile_program();
  body.set_program_id(program->id());
  *body.mutable_device_ids() = build->device_ids;
  std::vector<std::string_view> sources;
  if (program->origin() == Program::Origin::kSource) sources.push_back(program->text());
  for (cl_uint i = 0; i < num_input_headers; ++i) {
    Program* header = InputFrom(input_headers[i], program->context());
    if (header == nullptr) return CL_INVALID_PROGRAM;
    if (header_include_names[i] == nullptr) return CL_INVALID_VALUE;
    build->inputs.emplace_back(header);
    body.add_header_ids(header->id());
    // As the directives that name it, which are rewritten (absolute_includes.h).
    body.add_header_names(os::PortablePath(header_include_names[i]));
    if (header->origin() == Program::Origin::kSource) sources.push_back(header->text());
  }
  const bool whole = AddIncludes(sources, options, &body);
  CL_RETURN_IF_ERROR(program->BeginBuild(Program::Step::kCompile, build->device_ids,
                                         options != nullptr ? options : ""));
  // CL_INVALID_COMPILER_OPTIONS if the compiler options specified by options are invalid.
  if (!whole) return Refuse(*build, CL_INVALID_COMPILER_OPTIONS);
  return RunBuild(std::move(build));
}

cl_program CL_API_CALL clLinkProgram(cl_context context_handle, cl_uint num_devices,
                                     const cl_device_id* device_list, const char* options,
                                     cl_uint num_input_programs, const cl_program* input_programs,
                                     void(CL_CALLBACK* pfn_notify)(cl_program program,
                                                                   void* user_data),
                                     void* user_data, cl_int* errcode_ret) noexcept {
  Context* context = Context::From(context_handle);
  if (context == nullptr) return Fail(errcode_ret, CL_INVALID_CONTEXT);
  Uint64List device_ids;
  cl_int status = CheckCommon(context->session(), context->devices(), num_devices, device_list,
                              pfn_notify, user_data, &device_ids);
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  // Section 5.8.4: CL_INVALID_VALUE if num_input_programs is zero or input_programs is NULL.
  if (num_input_programs == 0 || input_programs == nullptr)
    return Fail(errcode_ret, CL_INVALID_VALUE);
  // CL_INVALID_LINKER_OPTIONS if the linker options specified by options are invalid; as builds'.
  if (ScanIncludes({}, OnTheWire(options), os::CurrentDirectory()).lacks_value)
    return Fail(errcode_ret, CL_INVALID_LINKER_OPTIONS);
  pb::Command command;
  pb::LinkProgram& body = *command.mutable_link_program();
  std::vector<Ref<Program>> inputs;
  for (cl_uint i = 0; i < num_input_programs; ++i) {
    Program* input = InputFrom(input_programs[i], *context);
    // CL_INVALID_PROGRAM if programs specified in input_programs are not valid program objects.
    if (input == nullptr) return Fail(errcode_ret, CL_INVALID_PROGRAM);
    // CL_INVALID_OPERATION if the compilation or build of a program by a previous call has not
    // completed.
    if (input->IsBuilding()) return Fail(errcode_ret, CL_INVALID_OPERATION);
    body.add_input_ids(input->id());
    inputs.emplace_back(input);
  }
  std::vector<Device*> devices;
  for (Device* device : context->devices()) {
    bool listed = device_ids.empty();
    for (const uint64_t id : device_ids) listed = listed || id == device->id();
    if (listed) devices.push_back(device);
  }
  auto program = Ref<Program>::Adopt(
      new Program(Ref<Context>(context), Program::Origin::kLinked, devices, ""));
  body.set_program_id(program->id());
  body.set_context_id(context->id());
  // Named one by one, in the order in which the client lists them: binaries come back in this
  // order.
  for (const Device* device : devices) body.add_device_ids(device->id());
  body.set_options(std::string(OnTheWire(options)));
  auto build = NewBuild(program.get(), Program::Step::kLink, pfn_notify, user_data);
  program->BeginBuild(Program::Step::kLink, {}, options != nullptr ? options : "");
  build->command = std::move(command);
  build->inputs = std::move(inputs);
  status = RunBuild(std::move(build));
  // A link that failed may leave a program behind, for its log.
  if (status != CL_SUCCESS && !program->made()) return Fail(errcode_ret, status);
  if (errcode_ret != nullptr) *errcode_ret = status;
  return program.Detach()->handle();
}

}  // namespace api
}  // namespace sluice::client
