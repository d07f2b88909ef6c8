// SPDX-License-Identifier: Apache-2.0
// The fake driver's inside: its objects and the little scheduler behind its queues. Everything is
// guarded by Runtime::mu, which is never held while a callback or an action of a command runs.
#pragma once

#include <CL/cl.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/fake_cl/fake_cl.h"

struct _cl_platform_id {};

namespace sluice::fake {

// errcode_ret of a call.
inline void Set(cl_int* out, cl_int status) {
  if (out != nullptr) *out = status;
}

// Counts what is alive.
struct Counted {
  Counted();
  virtual ~Counted();
  int references = 1;
};

using Callback = std::function<void()>;

}  // namespace sluice::fake

struct _cl_device_id {
  std::string name;
  cl_device_type type = 0;
  cl_device_id parent = nullptr;
  cl_uint vendor_id = 0;
  std::string version = "OpenCL 3.0 fake";
  std::string extensions = "cl_khr_fp64 cl_fake_secret";
};

struct _cl_context : sluice::fake::Counted {
  std::vector<cl_device_id> devices;
  size_t pending = 0;  // In all of its queues.
};

struct _cl_command_queue : sluice::fake::Counted {
  cl_context context = nullptr;
  cl_device_id device = nullptr;
  cl_command_queue_properties properties = 0;
  std::vector<cl_event> pending;  // Not ended, oldest first.
  cl_event barrier = nullptr;     // The newest pending barrier of an out-of-order queue.
};

struct _cl_mem : sluice::fake::Counted {
  cl_context context = nullptr;
  cl_mem parent = nullptr;
  cl_mem_flags flags = 0;
  cl_mem_object_type type = CL_MEM_OBJECT_BUFFER;
  size_t size = 0;
  std::vector<uint8_t> storage;
  uint8_t* data = nullptr;  // Of the storage, the application's memory, or the parent's.
  void* host_ptr = nullptr;
  cl_image_format format = {};
  cl_image_desc desc = {};
  size_t element = 0;
  size_t extent[3] = {0, 0, 0};
  size_t row_pitch = 0;
  std::vector<std::pair<void(CL_CALLBACK*)(cl_mem, void*), void*>> destructors;
};

struct _cl_program : sluice::fake::Counted {
  cl_context context = nullptr;
  std::vector<cl_device_id> devices;
  std::string source;
  std::string binary;
  bool from_binary = false;
  bool built_in = false;
  cl_build_status build_status = CL_BUILD_NONE;
  cl_program_binary_type binary_type = CL_PROGRAM_BINARY_TYPE_NONE;
  std::string options;
};

struct _cl_kernel : sluice::fake::Counted {
  cl_program program = nullptr;
  std::string name;
  std::map<cl_uint, std::string> args;
};

struct _cl_sampler : sluice::fake::Counted {
  cl_context context = nullptr;
};

struct _cl_semaphore_khr : sluice::fake::Counted {
  ~_cl_semaphore_khr() override;
  int fd = -1;
};

struct _cl_event : sluice::fake::Counted {
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  cl_command_type type = 0;
  cl_int status = CL_QUEUED;
  int waits_for = 0;
  std::vector<cl_event> dependents;
  std::vector<std::pair<void(CL_CALLBACK*)(cl_event, cl_int, void*), void*>> callbacks;
  std::function<cl_int()> action;
};

namespace sluice::fake {

// Everything that Install starts anew.
struct Runtime {
  explicit Runtime(Execution how);
  ~Runtime();

  Execution execution;
  // Recursive: what a command kept is dropped wherever the command goes.
  mutable std::recursive_mutex mu;
  std::condition_variable_any changed;
  std::vector<RecordedCall> calls;
  std::vector<std::pair<std::string, std::pair<int, cl_int>>> failures;  // name, (skip, status)
  bool hold_commands = false;
  bool hold_callbacks = false;
  bool mute_failures = false;
  cl_int DependencyFailure() const {
    return mute_failures ? -1 : CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
  }
  bool forgetful_binaries = false;
  bool kernels_end_late = false;
  bool arg_info_on_request = false;
  std::array<ArgumentInfo, 5> arguments = {{
      {"int*", CL_KERNEL_ARG_ADDRESS_GLOBAL, CL_KERNEL_ARG_ACCESS_NONE},
      {"int", CL_KERNEL_ARG_ADDRESS_PRIVATE, CL_KERNEL_ARG_ACCESS_NONE},
      {"int*", CL_KERNEL_ARG_ADDRESS_LOCAL, CL_KERNEL_ARG_ACCESS_NONE},
      {"image2d_t", CL_KERNEL_ARG_ADDRESS_GLOBAL, CL_KERNEL_ARG_ACCESS_READ_ONLY},
      {"sampler_t", CL_KERNEL_ARG_ADDRESS_PRIVATE, CL_KERNEL_ARG_ACCESS_NONE},
  }};
  bool has_callbacks = true;
  std::function<void(const char* message, bool with_data)>
      tell_context;  // The last one's callback.
  std::optional<std::array<uint8_t, 16>> gpu_uuid;
  std::optional<std::array<uint8_t, 8>> gpu_luid;
  std::vector<bool> ownership_changes;
  std::function<cl_int(bool)> on_ownership_change;
  bool gpu_semaphores = false;
  int misused_semaphores = 0;
  int behind_failed = 0;
  std::function<cl_int(const std::string&)> on_build;
  std::function<void(const std::string& name)> on_call;
  std::function<void(const std::string&)> on_kernel;
  std::deque<cl_event> ready;
  std::deque<Callback> callbacks;
  bool stop = false;
  std::thread thread;
  _cl_platform_id platform;
  _cl_device_id cpu{"Fake CPU", CL_DEVICE_TYPE_CPU, nullptr};
  _cl_device_id gpu{"Fake GPU", CL_DEVICE_TYPE_GPU, nullptr};

  // Runs what can run, here (kInline) or on the driver's thread. Called without the lock.
  void Kick();
  // Ends an event, and what depends on it if it failed. Callbacks are queued.
  void End(cl_event event, cl_int status, bool by_dependency);
  bool Step(std::unique_lock<std::recursive_mutex>&
                lock);  // One action or callback; false: nothing to do.
};

extern Runtime* g_runtime;

// Refers to or drops an object; dropping the last reference destroys it. Under the lock.
template <typename T>
T Ref(T object) {
  if (object != nullptr) ++object->references;
  return object;
}
void Drop(cl_context object);
void Drop(cl_command_queue object);
void Drop(cl_mem object);
void Drop(cl_program object);
void Drop(cl_kernel object);
void Drop(cl_sampler object);
void Drop(cl_event object);

// The status that a call of that name is to fail with; CL_SUCCESS if it is not.
cl_int TakeFailure(const std::string& name);

// The functions of cl_khr_semaphore by name; null for others (fake_semaphore.cc).
void* FindSemaphoreFunction(const char* name);

// Adds to the record of the call that this thread is in.
void Note(const char* key, const size_t* values, size_t count);
void NoteBytes(const void* bytes, size_t size);

// Puts a command into a queue. `action` runs when it may, without the lock.
cl_int Submit(cl_command_queue queue, cl_command_type type, cl_uint waits, const cl_event* list,
              cl_event* event, std::function<cl_int()> action, bool waits_for_all = false,
              bool is_barrier = false);

// clGet*Info's way of giving a value.
cl_int Give(const void* value, size_t size, size_t room, void* out, size_t* size_ret);
template <typename T>
cl_int GiveValue(const T& value, size_t room, void* out, size_t* size_ret) {
  return Give(&value, sizeof(value), room, out, size_ret);
}
inline cl_int GiveText(const std::string& text, size_t room, void* out, size_t* size_ret) {
  return Give(text.c_str(), text.size() + 1, room, out, size_ret);
}

// True if [offset, offset + size) lies within limit.
inline bool Fits(uint64_t offset, uint64_t size, uint64_t limit) {
  return offset <= limit && size <= limit - offset;
}

// The functions behind the table.
#define DRIVER_FUNCTION(name) extern decltype(::name) fake_##name;
#include "daemon/worker/driver_functions.inc"

}  // namespace sluice::fake
