// SPDX-License-Identifier: Apache-2.0
// A programmable OpenCL driver: one platform with a CPU and a GPU, whose buffers, images, queues
// and events work on plain memory, in the table through which the worker calls a driver. It records
// each call by value, refuses what it is told to refuse, and holds back commands and callbacks
// until a test lets them go. So every interleaving a real driver could show can be shown on
// purpose.
//
// Commands run on a thread of its own (kThreaded, as a real driver's) or inside the call that makes
// them runnable (kInline: deterministic, for the fuzzer). One instance per process at a time; all
// handles die with Reset. Thread-safe.
#pragma once

#include <CL/cl.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/worker/driver.h"

namespace sluice::fake {

// One call of the driver. Arguments that are numbers or handles are in `values`, in order; a
// pointer is there as 0 (null) or 1, and what it points to is in `arrays` or `bytes` where a test
// may ask.
struct RecordedCall {
  std::string name;
  std::vector<uint64_t> values;
  std::map<std::string, std::vector<uint64_t>> arrays;
  std::string bytes;
};

enum class Execution { kInline, kThreaded };

// The answers of clGetKernelArgInfo for an argument.
struct ArgumentInfo {
  std::string type;
  cl_kernel_arg_address_qualifier address;
  cl_kernel_arg_access_qualifier access;
};

class FakeCl {
 public:
  // Makes a new driver and installs it as the worker's.
  static FakeCl& Install(Execution execution = Execution::kThreaded);
  static FakeCl& Get();  // The one that is installed.

  // --- What was called.
  std::vector<RecordedCall> Calls(const std::string& name = "") const;
  RecordedCall Last(const std::string& name) const;  // An empty one if there was none.
  size_t Count(const std::string& name) const;
  void ClearCalls();
  // Objects of all kinds that are alive, devices and platforms apart.
  int live_objects() const;
  // Commands that were enqueued behind an event that had failed already: PoCL 3.1 never ends them.
  int behind_failed() const;

  // --- What happens.
  // The call after `skip` more of that name returns `status` (or null and `status`).
  void FailNext(const std::string& name, cl_int status, int skip = 0);
  // Commands stay queued until Release; those of user events too.
  void HoldCommands();
  void ReleaseCommands();
  // The driver calls nobody back until ReleaseCallbacks, newest first if `reversed`.
  void HoldCallbacks();
  void ReleaseCallbacks(bool reversed = false);
  size_t held_callbacks() const;
  // As PoCL 3.1: no callback for events that fail because another did, and -1 for their status.
  void set_mute_failures(bool mute);
  // As NVIDIA's: kernels of programs from binaries have no argument information.
  void set_forgetful_binaries(bool forgetful);
  // As NVIDIA's: what is no transfer has not ended, whoever asks, while the context's other queues
  // have something to do.
  void set_kernels_end_late(bool late);
  // As PoCL's: only after a build with -cl-kernel-arg-info.
  void set_arg_info_on_request(bool on_request);
  // In place of the usual; what the argument really is stays as it is.
  void set_argument_info(cl_uint index, const ArgumentInfo& info);
  // CL_DEVICE_VENDOR_ID of the GPU, 0 otherwise. Before the worker lists its devices.
  void set_gpu_vendor_id(cl_uint vendor_id);
  // CL_DEVICE_VERSION of the GPU. Before that, too.
  void set_gpu_version(const std::string& version);
  // CL_DEVICE_EXTENSIONS of the GPU.
  void set_gpu_extensions(const std::string& names);
  // As Wine: clSetEventCallback and clSetMemObjectDestructorCallback are refused.
  void set_has_callbacks(bool has_callbacks);
  // Calls back whom the last context was created with, as a driver that has met an error; without
  // the pointer that was given for it as Oclgrind does.
  void TellContext(const char* message, bool with_data);
  // Called inside clBuildProgram, clCompileProgram and clLinkProgram; what it returns is the
  // status.
  void set_on_build(std::function<cl_int(const std::string& options)> on_build);
  // Called before a function of the driver does anything, on the caller's thread.
  void set_on_call(std::function<void(const std::string& name)> on_call);
  // Called when a kernel runs, on the driver's thread.
  void set_on_kernel(std::function<void(const std::string& name)> on_kernel);
  static constexpr std::array<uint8_t, 16> kDriverUuid = {0xfa, 0xce};
  // The GPU has this UUID and imports opaque descriptors (which it only closes); without, neither.
  void set_gpu_uuid(const std::optional<std::array<uint8_t, 16>>& uuid);
  // The GPU is on the adapter with this LUID and imports Direct3D's textures; without, neither.
  void set_gpu_luid(const std::optional<std::array<uint8_t, 8>>& luid);
  // The GPU imports semaphores: descriptors of eventfds, whose count is the payload. A wait that
  // runs waits for a signal, on the driver's thread.
  void set_gpu_semaphores(bool imports);
  // Semaphores that were signalled twice, or waited for in vain (10 s).
  int misused_semaphores() const;
  // The changes of imported memory's owner that were said, in order: true, acquire; false, release.
  std::vector<bool> ownership_changes() const;
  // Called when such a command runs, on the driver's thread; what it returns is its status.
  void set_on_ownership_change(std::function<cl_int(bool acquire)> on_change);
  // Leaves functions out of the table, as a loader of an older OpenCL does. Installs again.
  void RemoveFunctions(const std::vector<std::string>& names);

  static cl_device_id cpu();
  static cl_device_id gpu();
};

}  // namespace sluice::fake
