// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_cl/fake_cl.h"

#include <algorithm>
#include <type_traits>

#include "tests/fake_cl/fake_objects.h"

namespace sluice::fake {

Runtime* g_runtime = nullptr;

namespace {

FakeCl g_fake;
std::vector<std::string> g_removed;
thread_local RecordedCall* t_call = nullptr;

template <typename T>
uint64_t ValueOf(T value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<uint64_t>(value);
  } else if constexpr (std::is_same_v<T, cl_mem> || std::is_same_v<T, cl_kernel> ||
                       std::is_same_v<T, cl_command_queue> || std::is_same_v<T, cl_context> ||
                       std::is_same_v<T, cl_program> || std::is_same_v<T, cl_event> ||
                       std::is_same_v<T, cl_device_id> || std::is_same_v<T, cl_sampler>) {
    return reinterpret_cast<uint64_t>(value);
  } else {
    return value == nullptr ? 0 : 1;
  }
}

struct Recording {
  explicit Recording(RecordedCall* call) : previous(t_call) { t_call = call; }
  ~Recording() {
    {
      const std::lock_guard lock(g_runtime->mu);
      // The fuzzer makes millions.
      if (g_runtime->calls.size() < 100000) g_runtime->calls.push_back(std::move(*t_call));
    }
    t_call = previous;
  }
  RecordedCall* const previous;
};

void CallBefore(const char* name) {
  std::function<void(const std::string&)> on_call;
  {
    const std::lock_guard lock(g_runtime->mu);
    on_call = g_runtime->on_call;
  }
  if (on_call) on_call(name);
}

// Records a call of `kImplementation`, then makes it unless it is to fail.
template <auto kImplementation, typename Function>
struct Recorded;
template <auto kImplementation, typename R, typename... Args>
struct Recorded<kImplementation, R(CL_API_CALL*)(Args...)> {
  static inline const char* name = "";

  static R CL_API_CALL Call(Args... args) {
    RecordedCall call{name, {ValueOf(args)...}, {}, {}};
    const Recording recording(&call);
    CallBefore(name);
    const cl_int failure = TakeFailure(name);
    if (failure == CL_SUCCESS) return kImplementation(args...);
    if constexpr (std::is_same_v<R, cl_int>) {
      return failure;
    } else if constexpr (std::is_pointer_v<R>) {
      (SetStatus(args, failure), ...);
      return nullptr;
    }
  }

  template <typename T>
  static void SetStatus(T arg, cl_int status) {
    if constexpr (std::is_same_v<T, cl_int*>) {
      if (arg != nullptr) *arg = status;
    }
  }
};

void InstallTable() {
  worker::Driver driver;
#define DRIVER_FUNCTION(function)                                                             \
  using Recorded_##function = Recorded<&fake_##function, decltype(worker::Driver::function)>; \
  Recorded_##function::name = #function;                                                      \
  if (std::find(g_removed.begin(), g_removed.end(), #function) == g_removed.end()) {          \
    driver.function = &Recorded_##function::Call;                                             \
  }
#include "daemon/worker/driver_functions.inc"
  worker::Driver::InstallForTesting(driver);
}

}  // namespace

cl_int TakeFailure(const std::string& name) {
  const std::lock_guard lock(g_runtime->mu);
  for (auto it = g_runtime->failures.begin(); it != g_runtime->failures.end(); ++it) {
    if (it->first != name) continue;
    if (it->second.first-- > 0) return CL_SUCCESS;
    const cl_int status = it->second.second;
    g_runtime->failures.erase(it);
    return status;
  }
  return CL_SUCCESS;
}

void Note(const char* key, const size_t* values, size_t count) {
  if (t_call == nullptr || values == nullptr) return;
  t_call->arrays[key].assign(values, values + count);
}

void NoteBytes(const void* bytes, size_t size) {
  if (t_call != nullptr && bytes != nullptr) {
    t_call->bytes.assign(static_cast<const char*>(bytes), size);
  }
}

FakeCl& FakeCl::Install(Execution execution) {
  delete g_runtime;
  g_runtime = new Runtime(execution);
  g_removed.clear();
  InstallTable();
  return g_fake;
}

FakeCl& FakeCl::Get() { return g_fake; }

void FakeCl::RemoveFunctions(const std::vector<std::string>& names) {
  g_removed = names;
  InstallTable();
}

std::vector<RecordedCall> FakeCl::Calls(const std::string& name) const {
  const std::lock_guard lock(g_runtime->mu);
  std::vector<RecordedCall> calls;
  for (const RecordedCall& call : g_runtime->calls) {
    if (name.empty() || call.name == name) calls.push_back(call);
  }
  return calls;
}

RecordedCall FakeCl::Last(const std::string& name) const {
  const std::vector<RecordedCall> calls = Calls(name);
  return calls.empty() ? RecordedCall() : calls.back();
}

size_t FakeCl::Count(const std::string& name) const { return Calls(name).size(); }

void FakeCl::ClearCalls() {
  const std::lock_guard lock(g_runtime->mu);
  g_runtime->calls.clear();
}

int FakeCl::behind_failed() const {
  const std::lock_guard lock(g_runtime->mu);
  return g_runtime->behind_failed;
}

void FakeCl::FailNext(const std::string& name, cl_int status, int skip) {
  const std::lock_guard lock(g_runtime->mu);
  g_runtime->failures.push_back({name, {skip, status}});
}

void FakeCl::HoldCommands() {
  const std::lock_guard lock(g_runtime->mu);
  g_runtime->hold_commands = true;
}

void FakeCl::ReleaseCommands() {
  {
    const std::lock_guard lock(g_runtime->mu);
    g_runtime->hold_commands = false;
  }
  g_runtime->Kick();
}

void FakeCl::HoldCallbacks() {
  const std::lock_guard lock(g_runtime->mu);
  g_runtime->hold_callbacks = true;
}

void FakeCl::ReleaseCallbacks(bool reversed) {
  {
    const std::lock_guard lock(g_runtime->mu);
    g_runtime->hold_callbacks = false;
    if (reversed) std::reverse(g_runtime->callbacks.begin(), g_runtime->callbacks.end());
  }
  g_runtime->Kick();
}

size_t FakeCl::held_callbacks() const {
  const std::lock_guard lock(g_runtime->mu);
  return g_runtime->callbacks.size();
}

void FakeCl::set_mute_failures(bool mute) {
  const std::lock_guard lock(g_runtime->mu);
  g_runtime->mute_failures = mute;
}

void FakeCl::set_forgetful_binaries(bool forgetful) {
  const std::lock_guard lock(g_runtime->mu);
  g_runtime->forgetful_binaries = forgetful;
}

void FakeCl::set_kernels_end_late(bool late) {
  const std::lock_guard lock(g_runtime->mu);
  g_runtime->kernels_end_late = late;
}

void FakeCl::set_arg_info_on_request(bool on_request) {
  const std::lock_guard lock(g_runtime->mu);
  g_runtime->arg_info_on_request = on_request;
}

void FakeCl::set_argument_info(cl_uint index, const ArgumentInfo& info) {
  const std::lock_guard lock(g_runtime->mu);
  g_runtime->arguments[index] = info;
}

void FakeCl::TellContext(const char* message, bool with_data) {
  std::function<void(const char*, bool)> tell;
  {
    const std::lock_guard lock(g_runtime->mu);
    tell = g_runtime->tell_context;
  }
  tell(message, with_data);
}

void FakeCl::set_has_callbacks(bool has_callbacks) {
  const std::lock_guard lock(g_runtime->mu);
  g_runtime->has_callbacks = has_callbacks;
}

void FakeCl::set_on_build(std::function<cl_int(const std::string&)> on_build) {
  const std::lock_guard lock(g_runtime->mu);
  g_runtime->on_build = std::move(on_build);
}

void FakeCl::set_on_call(std::function<void(const std::string&)> on_call) {
  const std::lock_guard lock(g_runtime->mu);
  g_runtime->on_call = std::move(on_call);
}

void FakeCl::set_on_kernel(std::function<void(const std::string&)> on_kernel) {
  const std::lock_guard lock(g_runtime->mu);
  g_runtime->on_kernel = std::move(on_kernel);
}

void FakeCl::set_gpu_luid(const std::optional<std::array<uint8_t, 8>>& luid) {
  const std::lock_guard lock(g_runtime->mu);
  g_runtime->gpu_luid = luid;
}

void FakeCl::set_on_ownership_change(std::function<cl_int(bool)> on_change) {
  const std::lock_guard lock(g_runtime->mu);
  g_runtime->on_ownership_change = std::move(on_change);
}

void FakeCl::set_gpu_uuid(const std::optional<std::array<uint8_t, 16>>& uuid) {
  const std::lock_guard lock(g_runtime->mu);
  g_runtime->gpu_uuid = uuid;
}

void FakeCl::set_gpu_semaphores(bool imports) {
  const std::lock_guard lock(g_runtime->mu);
  g_runtime->gpu_semaphores = imports;
}

int FakeCl::misused_semaphores() const {
  const std::lock_guard lock(g_runtime->mu);
  return g_runtime->misused_semaphores;
}

std::vector<bool> FakeCl::ownership_changes() const {
  const std::lock_guard lock(g_runtime->mu);
  return g_runtime->ownership_changes;
}

void FakeCl::set_gpu_vendor_id(cl_uint vendor_id) {
  const std::lock_guard lock(g_runtime->mu);
  g_runtime->gpu.vendor_id = vendor_id;
}

void FakeCl::set_gpu_extensions(const std::string& names) {
  const std::lock_guard lock(g_runtime->mu);
  g_runtime->gpu.extensions = names;
}

void FakeCl::set_gpu_version(const std::string& version) {
  const std::lock_guard lock(g_runtime->mu);
  g_runtime->gpu.version = version;
}

cl_device_id FakeCl::cpu() { return &g_runtime->cpu; }
cl_device_id FakeCl::gpu() { return &g_runtime->gpu; }

}  // namespace sluice::fake
