// SPDX-License-Identifier: Apache-2.0
#include "client_icd/objects/program.h"

#include <cstring>
#include <numeric>

#include "client_icd/base/api.h"
#include "client_icd/base/args.h"
#include "client_icd/objects/kernel_metadata.h"
#include "client_icd/objects/platform.h"
#include "client_icd/program_headers/absolute_includes.h"
#include "proto/frame.h"

namespace sluice::client {

Program::Program(Ref<Context> context, Origin origin, std::span<Device* const> devices,
                 std::string text)
    : ClObject(context->session().NextId()),
      context_(std::move(context)),
      origin_(origin),
      text_(std::move(text)),
      device_pointers_(devices.begin(), devices.end()),
      states_(devices.size()) {
  for (Device* device : devices) devices_.emplace_back(device);
}

Program::~Program() {
  if (made_.load(std::memory_order_relaxed)) session().ReleaseObject(id());
}

bool Program::ListedLocked(size_t index, const Uint64List& device_ids) const {
  if (device_ids.empty()) return true;
  for (const uint64_t id : device_ids) {
    if (device_pointers_[index]->id() == id) return true;
  }
  return false;
}

cl_int Program::BeginBuild(Step step, const Uint64List& device_ids, const std::string& options) {
  absl::MutexLock lock(&mu_);
  for (size_t i = 0; i < states_.size(); ++i) {
    // Section 5.8.2: CL_INVALID_OPERATION if the build of a program executable for any of the
    // devices listed in device_list by a previous call to clBuildProgram for program has not
    // completed.
    if (ListedLocked(i, device_ids) && states_[i].status == CL_BUILD_IN_PROGRESS)
      return CL_INVALID_OPERATION;
  }
  // Sections 5.8.2 and 5.8.3: CL_INVALID_OPERATION if there are kernel objects attached to program.
  if (step != Step::kLink && kernels_ > 0) return CL_INVALID_OPERATION;
  for (size_t i = 0; i < states_.size(); ++i) {
    if (!ListedLocked(i, device_ids)) continue;
    states_[i].status = CL_BUILD_IN_PROGRESS;
    states_[i].binary_type = CL_PROGRAM_BINARY_TYPE_NONE;
    states_[i].options = options;
    states_[i].log.clear();
  }
  metadata_.clear();
  kernel_names_.clear();
  return CL_SUCCESS;
}

void Program::EndBuild(const Uint64List& device_ids, cl_int status, const pb::ProgramState& state) {
  absl::MutexLock lock(&mu_);
  for (size_t i = 0; i < states_.size(); ++i) {
    // The driver's word on another device may be older than that device's own build.
    if (!ListedLocked(i, device_ids)) continue;
    states_[i].status = status == CL_SUCCESS ? CL_BUILD_SUCCESS : CL_BUILD_ERROR;
    for (const pb::ProgramState::Device& device : state.devices()) {
      if (device.device_id() != device_pointers_[i]->id()) continue;
      states_[i].status = device.build_status();
      states_[i].binary_type = device.binary_type();
      states_[i].log = device.log();
    }
  }
}

void Program::LearnKernels(const pb::Answer& answer) {
  if (answer.count() != static_cast<uint64_t>(answer.kernels_size()) || devices_.size() != 1)
    return;
  absl::MutexLock lock(&mu_);
  kernel_names_.clear();
  for (const pb::KernelDescription& kernel : answer.kernels()) {
    metadata_[kernel.name()] = std::make_shared<KernelMetadata>(kernel);
    kernel_names_.push_back(kernel.name());
  }
}

std::vector<std::string> Program::KernelNames() const {
  absl::MutexLock lock(&mu_);
  return kernel_names_;
}

bool Program::KnowsKernels(const std::string& name, std::shared_ptr<KernelMetadata>* kernel) const {
  absl::MutexLock lock(&mu_);
  if (kernel_names_.empty()) return false;
  const auto it = metadata_.find(name);
  *kernel = it == metadata_.end() ? nullptr : it->second;
  return true;
}

void Program::RefuseBuild(const Uint64List& device_ids, std::string_view why) {
  absl::MutexLock lock(&mu_);
  for (size_t i = 0; i < states_.size(); ++i) {
    if (!ListedLocked(i, device_ids)) continue;
    states_[i].status = CL_BUILD_ERROR;
    states_[i].log = why;
  }
}

bool Program::IsBuilding() const {
  absl::MutexLock lock(&mu_);
  for (const BuildState& state : states_) {
    if (state.status == CL_BUILD_IN_PROGRESS) return true;
  }
  return false;
}

bool Program::HasExecutable() const {
  for (const Device* device : device_pointers_) {
    if (HasExecutableFor(*device)) return true;
  }
  return false;
}

// Section 5.8.7: "If a program binary has not been built for a sub-device, the program binary
// associated with the parent device will be used."
std::optional<Program::BuildState> Program::StateFor(const Device& device) const {
  absl::MutexLock lock(&mu_);
  for (const Device* at = &device; at != nullptr; at = at->parent()) {
    for (size_t i = 0; i < states_.size(); ++i) {
      // Built-in kernels need no build.
      const bool has_program = states_[i].status != CL_BUILD_NONE || origin_ == Origin::kBuiltIn;
      if (device_pointers_[i] == at && has_program) return states_[i];
    }
  }
  return std::nullopt;
}

bool Program::HasExecutableFor(const Device& device) const {
  const std::optional<BuildState> state = StateFor(device);
  if (!state.has_value()) return false;
  if (origin_ == Origin::kBuiltIn) return true;
  // A compiled object or a library is no executable; an answer without a type leaves it to the
  // driver.
  return state->status == CL_BUILD_SUCCESS &&
         (state->binary_type == CL_PROGRAM_BINARY_TYPE_EXECUTABLE ||
          state->binary_type == CL_PROGRAM_BINARY_TYPE_NONE);
}

std::string Program::OptionsFor(const Device& device) const {
  return StateFor(device).value_or(BuildState()).options;
}

void Program::AttachKernel() {
  absl::MutexLock lock(&mu_);
  ++kernels_;
}

void Program::DetachKernel() {
  absl::MutexLock lock(&mu_);
  --kernels_;
}

std::shared_ptr<KernelMetadata> Program::Metadata(const pb::KernelDescription& description) {
  absl::MutexLock lock(&mu_);
  std::shared_ptr<KernelMetadata>& metadata = metadata_[description.name()];
  if (metadata == nullptr) metadata = std::make_shared<KernelMetadata>(description);
  return metadata;
}

cl_int Program::GetBinaries(const InfoSink& sink) {
  if (sink.value() == nullptr) {
    if (sink.size_ret() != nullptr) *sink.size_ret() = devices_.size() * sizeof(unsigned char*);
    return CL_SUCCESS;
  }
  // Section 5.8.7: param_value points to an array of n pointers allocated by the caller, n the
  // number of devices.
  if (sink.room() < devices_.size() * sizeof(unsigned char*)) return CL_INVALID_VALUE;
  std::string size_bytes;
  std::string binaries;
  CL_RETURN_IF_ERROR(
      FetchInfo(session(), {pb::GetInfo::PROGRAM, id(), CL_PROGRAM_BINARY_SIZES}, &size_bytes));
  CL_RETURN_IF_ERROR(
      FetchInfo(session(), {pb::GetInfo::PROGRAM, id(), CL_PROGRAM_BINARIES}, &binaries));
  std::vector<size_t> sizes(size_bytes.size() / sizeof(size_t));
  std::memcpy(sizes.data(), size_bytes.data(), sizes.size() * sizeof(size_t));
  // The worker is not believed: what it sent must fit what it announced, and the application's
  // array.
  size_t offset = 0;
  unsigned char** out = static_cast<unsigned char**>(sink.value());
  if (sizes.size() != devices_.size()) return CL_OUT_OF_RESOURCES;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > binaries.size() - offset) return CL_OUT_OF_RESOURCES;
    // If an entry is NULL, the implementation skips the device.
    if (out[i] != nullptr) std::memcpy(out[i], binaries.data() + offset, sizes[i]);
    offset += sizes[i];
  }
  if (sink.size_ret() != nullptr) *sink.size_ret() = devices_.size() * sizeof(unsigned char*);
  return CL_SUCCESS;
}

cl_int Program::GetInfo(cl_program_info param_name, const InfoSink& sink) {
  switch (param_name) {
    case CL_PROGRAM_REFERENCE_COUNT:
      return sink.Value<cl_uint>(app_count());
    case CL_PROGRAM_CONTEXT:
      return sink.Value<cl_context>(context_->handle());
    case CL_PROGRAM_NUM_DEVICES:
      return sink.Value<cl_uint>(static_cast<cl_uint>(devices_.size()));
    case CL_PROGRAM_DEVICES: {
      std::vector<cl_device_id> handles;
      for (Device* device : device_pointers_) handles.push_back(device->handle());
      return sink.Array(handles);
    }
    case CL_PROGRAM_SOURCE:
      // Section 5.8.7: "a null string or the appropriate program source code is returned" for other
      // programs.
      return sink.String(origin_ == Origin::kSource ? std::string_view(text_) : std::string_view());
    case CL_PROGRAM_IL:
      return sink.Bytes(text_.data(), origin_ == Origin::kIl ? text_.size() : 0);
    case CL_PROGRAM_BINARIES:
      return GetBinaries(sink);
    case CL_PROGRAM_NUM_KERNELS:
    case CL_PROGRAM_KERNEL_NAMES:
      // CL_INVALID_PROGRAM_EXECUTABLE if a successful program executable has not been built for at
      // least one device.
      if (!HasExecutable()) return CL_INVALID_PROGRAM_EXECUTABLE;
      [[fallthrough]];
    default:
      return WireInfo(session(), {pb::GetInfo::PROGRAM, id(), param_name}, sink);
  }
}

cl_int Program::GetBuildInfo(const Device& device, cl_program_build_info param_name,
                             const InfoSink& sink) {
  const BuildState state = StateFor(device).value_or(BuildState());
  switch (param_name) {
    case CL_PROGRAM_BUILD_STATUS:
      return sink.Value<cl_build_status>(state.status);
    case CL_PROGRAM_BUILD_OPTIONS:
      return sink.String(state.options);
    case CL_PROGRAM_BUILD_LOG:
      // Section 5.8.7: an empty string while there is no log.
      if (state.status == CL_BUILD_IN_PROGRESS) return sink.String("");
      if (!state.log.empty()) return sink.String(state.log);
      break;
    case CL_PROGRAM_BINARY_TYPE:
      // Only the driver knows the kind of a loaded binary before its build.
      if (state.status != CL_BUILD_NONE)
        return sink.Value<cl_program_binary_type>(state.binary_type);
      break;
    default:
      break;
  }
  return WireInfo(session(), {pb::GetInfo::PROGRAM_BUILD, id(), param_name, device.id()}, sink);
}

namespace {

// Sends the command that makes `program`; the handle, or null with the error. With an `answer` it
// waits: what it says is wanted, or the driver may refuse what it was given.
cl_program Make(Ref<Program> program, pb::Command& command, std::string_view payload,
                pb::Answer* answer, cl_int* errcode_ret) {
  // The daemon may refuse more for its size.
  const bool asks = answer != nullptr || payload.size() > wire::kMaxInitialPayloadBytes;
  const cl_int status = program->context().Create(command, payload, {.needs_answer = asks}, answer);
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  program->SetMade();
  Succeed(errcode_ret);
  return program.Detach()->handle();
}

// The context's devices that the ids name, in the order of the ids.
std::vector<Device*> PickDevices(const Context& context, const Uint64List& ids) {
  std::vector<Device*> picked;
  for (const uint64_t id : ids) {
    for (Device* device : context.devices()) {
      if (device->id() == id) picked.push_back(device);
    }
  }
  return picked;
}

cl_program CreateWithIl(cl_context context_handle, const void* il, size_t length,
                        cl_int* errcode_ret) {
  Context* context = Context::From(context_handle);
  if (context == nullptr) return Fail(errcode_ret, CL_INVALID_CONTEXT);
  // Section 5.8.1: CL_INVALID_VALUE if il is NULL or if length is zero.
  if (il == nullptr || length == 0) return Fail(errcode_ret, CL_INVALID_VALUE);
  const std::string_view payload(static_cast<const char*>(il), length);
  auto program = Ref<Program>::Adopt(new Program(Ref<Context>(context), Program::Origin::kIl,
                                                 context->devices(), std::string(payload)));
  ScopedCommand command;
  pb::CreateProgramWithIl& body = *command->mutable_create_program_with_il();
  body.set_program_id(program->id());
  body.set_context_id(context->id());
  pb::Answer answer;
  return Make(std::move(program), *command, payload, &answer, errcode_ret);
}

}  // namespace

namespace api {

cl_program CL_API_CALL clCreateProgramWithSource(cl_context context_handle, cl_uint count,
                                                 const char** strings, const size_t* lengths,
                                                 cl_int* errcode_ret) noexcept {
  Context* context = Context::From(context_handle);
  if (context == nullptr) return Fail(errcode_ret, CL_INVALID_CONTEXT);
  // Section 5.8.1: CL_INVALID_VALUE if count is zero or if strings or any entry in strings is NULL.
  if (count == 0 || strings == nullptr) return Fail(errcode_ret, CL_INVALID_VALUE);
  std::string source;
  for (cl_uint i = 0; i < count; ++i) {
    if (strings[i] == nullptr) return Fail(errcode_ret, CL_INVALID_VALUE);
    if (lengths != nullptr && lengths[i] != 0) {
      source.append(strings[i], lengths[i]);
    } else {
      source.append(strings[i]);
    }
  }
  auto program = Ref<Program>::Adopt(new Program(Ref<Context>(context), Program::Origin::kSource,
                                                 context->devices(), std::move(source)));
  ScopedCommand command;
  pb::CreateProgramWithSource& body = *command->mutable_create_program_with_source();
  body.set_program_id(program->id());
  body.set_context_id(context->id());
  // The application still finds its own text in CL_PROGRAM_SOURCE.
  const std::string text = RewriteAbsoluteIncludes(program->text());
  return Make(std::move(program), *command, text, nullptr, errcode_ret);
}

cl_program CL_API_CALL clCreateProgramWithBinary(cl_context context_handle, cl_uint num_devices,
                                                 const cl_device_id* device_list,
                                                 const size_t* lengths,
                                                 const unsigned char** binaries,
                                                 cl_int* binary_status,
                                                 cl_int* errcode_ret) noexcept {
  Context* context = Context::From(context_handle);
  if (context == nullptr) return Fail(errcode_ret, CL_INVALID_CONTEXT);
  // Section 5.8.1: CL_INVALID_VALUE if device_list is NULL or num_devices is zero, or lengths or
  // binaries is NULL.
  if (device_list == nullptr || num_devices == 0 || lengths == nullptr || binaries == nullptr) {
    return Fail(errcode_ret, CL_INVALID_VALUE);
  }
  ScopedCommand command;
  pb::CreateProgramWithBinary& body = *command->mutable_create_program_with_binary();
  cl_int status =
      ReadDevices(num_devices, device_list, context->devices(), body.mutable_device_ids());
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  std::string payload;
  for (cl_uint i = 0; i < num_devices; ++i) {
    // CL_INVALID_VALUE if any entry in lengths[i] is zero or binaries[i] is NULL, also as that
    // device's status.
    const bool bad = lengths[i] == 0 || binaries[i] == nullptr;
    if (binary_status != nullptr) binary_status[i] = bad ? CL_INVALID_VALUE : CL_SUCCESS;
    if (bad) status = CL_INVALID_VALUE;
    if (bad) continue;
    body.add_sizes(lengths[i]);
    payload.append(reinterpret_cast<const char*>(binaries[i]), lengths[i]);
  }
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  auto program = Ref<Program>::Adopt(new Program(Ref<Context>(context), Program::Origin::kBinary,
                                                 PickDevices(*context, body.device_ids()), ""));
  body.set_program_id(program->id());
  body.set_context_id(context->id());
  pb::Answer answer;
  const cl_program made = Make(std::move(program), *command, payload, &answer, errcode_ret);
  if (binary_status != nullptr && answer.data().size() == num_devices * sizeof(cl_int)) {
    std::memcpy(binary_status, answer.data().data(), answer.data().size());
  }
  return made;
}

cl_program CL_API_CALL clCreateProgramWithIL(cl_context context, const void* il, size_t length,
                                             cl_int* errcode_ret) noexcept {
  return CreateWithIl(context, il, length, errcode_ret);
}

cl_program CL_API_CALL clCreateProgramWithILKHR(cl_context context, const void* il, size_t length,
                                                cl_int* errcode_ret) noexcept {
  return CreateWithIl(context, il, length, errcode_ret);
}

cl_program CL_API_CALL clCreateProgramWithBuiltInKernels(cl_context context_handle,
                                                         cl_uint num_devices,
                                                         const cl_device_id* device_list,
                                                         const char* kernel_names,
                                                         cl_int* errcode_ret) noexcept {
  Context* context = Context::From(context_handle);
  if (context == nullptr) return Fail(errcode_ret, CL_INVALID_CONTEXT);
  // Section 5.8.1: CL_INVALID_VALUE if device_list is NULL or num_devices is zero, or kernel_names
  // is NULL.
  if (device_list == nullptr || num_devices == 0 || kernel_names == nullptr)
    return Fail(errcode_ret, CL_INVALID_VALUE);
  ScopedCommand command;
  pb::CreateProgramWithBuiltInKernels& body =
      *command->mutable_create_program_with_built_in_kernels();
  const cl_int status =
      ReadDevices(num_devices, device_list, context->devices(), body.mutable_device_ids());
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  auto program = Ref<Program>::Adopt(new Program(Ref<Context>(context), Program::Origin::kBuiltIn,
                                                 PickDevices(*context, body.device_ids()), ""));
  body.set_program_id(program->id());
  body.set_context_id(context->id());
  body.set_names(kernel_names);
  pb::Answer answer;
  return Make(std::move(program), *command, {}, &answer, errcode_ret);
}

cl_int CL_API_CALL clRetainProgram(cl_program program) noexcept {
  return RetainHandle<Program>(program, CL_INVALID_PROGRAM);
}

cl_int CL_API_CALL clReleaseProgram(cl_program program) noexcept {
  return ReleaseHandle<Program>(program, CL_INVALID_PROGRAM);
}

cl_int CL_API_CALL clGetProgramInfo(cl_program program_handle, cl_program_info param_name,
                                    size_t param_value_size, void* param_value,
                                    size_t* param_value_size_ret) noexcept {
  Program* program = Program::From(program_handle);
  if (program == nullptr) return CL_INVALID_PROGRAM;
  return program->GetInfo(param_name,
                          InfoSink(param_value_size, param_value, param_value_size_ret));
}

cl_int CL_API_CALL clGetProgramBuildInfo(cl_program program_handle, cl_device_id device_handle,
                                         cl_program_build_info param_name, size_t param_value_size,
                                         void* param_value, size_t* param_value_size_ret) noexcept {
  Program* program = Program::From(program_handle);
  if (program == nullptr) return CL_INVALID_PROGRAM;
  // Section 5.8.7: CL_INVALID_DEVICE if device is not in the list of devices associated with
  // program.
  for (Device* device : program->devices()) {
    if (device->handle() != device_handle) continue;
    return program->GetBuildInfo(*device, param_name,
                                 InfoSink(param_value_size, param_value, param_value_size_ret));
  }
  return CL_INVALID_DEVICE;
}

cl_int CL_API_CALL clSetProgramSpecializationConstant(cl_program program_handle, cl_uint spec_id,
                                                      size_t spec_size,
                                                      const void* spec_value) noexcept {
  Program* program = Program::From(program_handle);
  // Section 5.8.2: CL_INVALID_PROGRAM if program is not a valid program object created from an
  // intermediate language.
  if (program == nullptr || program->origin() != Program::Origin::kIl) return CL_INVALID_PROGRAM;
  // CL_INVALID_VALUE if spec_value is NULL, or its size is not that of the constant, which are 1 to
  // 8 bytes long.
  if (spec_value == nullptr || spec_size == 0 || spec_size > sizeof(cl_ulong))
    return CL_INVALID_VALUE;
  ScopedCommand command;
  pb::SetProgramSpecializationConstant& body =
      *command->mutable_set_program_specialization_constant();
  body.set_program_id(program->id());
  body.set_spec_id(spec_id);
  body.set_value(spec_value, spec_size);
  return program->stream().Call(*command, {}, nullptr);
}

cl_int CL_API_CALL clSetProgramReleaseCallback(cl_program program_handle,
                                               void(CL_CALLBACK* pfn_notify)(cl_program program,
                                                                             void* user_data),
                                               void* /*user_data*/) noexcept {
  if (Program::From(program_handle) == nullptr) return CL_INVALID_PROGRAM;
  if (pfn_notify == nullptr) return CL_INVALID_VALUE;
  // Section 5.8.1 (deprecated): CL_INVALID_OPERATION if no devices in the context associated with
  // program support destructors for program scope global variables. None does since OpenCL C++ was
  // removed.
  return CL_INVALID_OPERATION;
}

cl_int CL_API_CALL clUnloadCompiler(void) noexcept { return CL_SUCCESS; }

cl_int CL_API_CALL clUnloadPlatformCompiler(cl_platform_id platform) noexcept {
  return Platform::From(platform) == nullptr ? CL_INVALID_PLATFORM : CL_SUCCESS;
}

}  // namespace api
}  // namespace sluice::client
