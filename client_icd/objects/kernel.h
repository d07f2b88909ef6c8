// SPDX-License-Identifier: Apache-2.0
// A kernel: a function of a program with its arguments. Arguments are kept here and sent with the
// next launch, changed ones only; they name objects by id and keep nothing alive. KernelMetadata
// has all that is needed to judge a launch.
//
// Keeps its program; held by the application. Thread-safe, though the specification does not ask it
// of arguments: a launch takes the changed arguments and is posted under mu_, so that launches of
// one kernel from several threads each see whole sets. Lock order: mu_ before the stream's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client_icd/base/native_backing.h"
#include "client_icd/base/object.h"
#include "client_icd/objects/kernel_metadata.h"
#include "client_icd/objects/program.h"
#include "client_icd/objects/queue.h"

namespace sluice::client {

// A value that an argument was set to.
struct KernelArgValue {
  enum class Kind : uint8_t { kUnset, kData, kMemory, kSampler, kLocal, kSvm, kQueue };
  Kind kind = Kind::kUnset;
  uint64_t number = 0;        // An id, a size, or an address.
  uint64_t origin_bytes = 0;  // Of a sub-buffer in its parent: launches check its alignment.
  std::string data;
  // Of a shared object (client_icd/sharing): launches check that it is acquired. `writes`: the
  // kernel may change it.
  std::shared_ptr<UseGate> gate;
  bool writes = false;

  bool operator==(const KernelArgValue&) const = default;
};

// The limits of a launch on one device.
struct LaunchLimits {
  const Device* device = nullptr;
  bool executable = false;              // The kernel's program is built for it.
  size_t work_group_size = 0;           // CL_KERNEL_WORK_GROUP_SIZE.
  size_t required_size[3] = {0, 0, 0};  // reqd_work_group_size; zeros without it.
  bool uniform = false;                 // Work-groups must divide the work evenly.
  bool allows_empty = false;            // No work at all is not an error.
  uint64_t max_size = 0;                // Largest size_t of the device.
  cl_ulong local_memory = 0;            // CL_DEVICE_LOCAL_MEM_SIZE, less what the kernel declares.
};

class Kernel : public ClObject<Kernel, cl_kernel, ObjectKind::kKernel> {
 public:
  Kernel(Ref<Program> program, uint64_t id);
  ~Kernel();

  Program& program() const { return *program_; }
  Context& context() const { return program_->context(); }
  Session& session() const { return program_->session(); }
  CommandStream& stream() const { return program_->stream(); }
  const KernelMetadata& metadata() const { return *metadata_; }

  // The worker has made it: from now on it is released on the wire too. Before the handle is given
  // out.
  void SetMade(std::shared_ptr<KernelMetadata> metadata);
  void CopyArgsFrom(Kernel& source);

  cl_int SetArg(cl_uint index, size_t size, const void* value);
  cl_int SetSvmArg(cl_uint index, const void* pointer);

  // CL_INVALID_KERNEL_ARGS or CL_MISALIGNED_SUB_BUFFER_OFFSET, or CL_SUCCESS.
  cl_int CheckArgsLocked(const Device& device) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  cl_ulong LocalArgBytesLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The arguments that have changed since the last call. Must be posted before mu_ is released.
  void TakeChangedArgsLocked(google::protobuf::RepeatedPtrField<pb::KernelArg>* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  const LaunchLimits& LimitsLocked(const Device& device) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Mutex& mu() ABSL_LOCK_RETURNED(mu_) { return mu_; }

  cl_int GetInfo(cl_kernel_info param_name, const InfoSink& sink);
  cl_int GetArgInfo(cl_uint index, cl_kernel_arg_info param_name, const InfoSink& sink);
  cl_int GetWorkGroupInfo(const Device& device, cl_kernel_work_group_info param_name,
                          const InfoSink& sink);

 private:
  // `memory` is what the handle at `value` names, if that is one.
  cl_int ReadMemoryArg(cl_uint index, size_t size, const void* value, const MemObject* memory,
                       KernelArgValue* out) const;
  cl_int ReadSamplerArg(size_t size, const void* value, KernelArgValue* out) const;
  cl_int ReadQueueArg(size_t size, const void* value, KernelArgValue* out) const;
  cl_int ReadValueArg(cl_uint index, size_t size, const void* value, KernelArgValue* out) const;
  cl_int ReadUnknownArg(cl_uint index, size_t size, const void* value, KernelArgValue* out) const;
  cl_int AskDriver(cl_uint index, size_t size, const KernelArgValue& value) const;
  void StoreArg(cl_uint index, KernelArgValue value);
  void StoreArgLocked(cl_uint index, KernelArgValue value) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool StoreValue(cl_uint index, size_t size, const void* value);
  cl_int SetMemoryArg(cl_uint index, size_t size, const void* value);
  cl_int SetOtherArg(cl_uint index, size_t size, const void* value);

  struct Arg {
    KernelArgValue value;
    bool changed = false;
  };

  const Ref<Program> program_;
  std::shared_ptr<KernelMetadata> metadata_;  // Set before the handle is given out, constant after.

  mutable absl::Mutex mu_;
  std::vector<Arg> args_ ABSL_GUARDED_BY(mu_);
  std::vector<LaunchLimits> limits_ ABSL_GUARDED_BY(mu_);  // Of the devices it was launched on.
};

}  // namespace sluice::client
