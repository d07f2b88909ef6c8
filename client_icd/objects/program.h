// SPDX-License-Identifier: Apache-2.0
// A program: source, binaries, intermediate language or built-in kernels for some devices of a
// context, and how far each of them has been built. Keeps its context and devices; held by the
// application, by its kernels, and by a build that runs.
//
// All that the application gave (source, options) and the worker's answers said (build status) is
// kept here, so that queries need no traffic; logs and binaries stay with the worker. Thread-safe.
// Lock: mu_, held over no call that waits.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client_icd/base/object.h"
#include "client_icd/objects/context.h"
#include "client_icd/session/info.h"
#include "proto/command.pb.h"

namespace sluice::client {

class KernelMetadata;

class Program : public ClObject<Program, cl_program, ObjectKind::kProgram> {
 public:
  enum class Origin { kSource, kBinary, kIl, kBuiltIn, kLinked };
  enum class Step { kBuild, kCompile, kLink };
  using Notify = void(CL_CALLBACK*)(cl_program program, void* user_data);

  // `text` is the source or the intermediate language.
  Program(Ref<Context> context, Origin origin, std::span<Device* const> devices, std::string text);
  ~Program();

  Context& context() const { return *context_; }
  Session& session() const { return context_->session(); }
  CommandStream& stream() const { return context_->stream(); }
  Origin origin() const { return origin_; }
  const std::string& text() const { return text_; }
  std::span<Device* const> devices() const { return device_pointers_; }

  // The worker has made it: from now on it is released on the wire too.
  void SetMade() { made_.store(true, std::memory_order_relaxed); }
  bool made() const { return made_.load(std::memory_order_relaxed); }

  // Marks the listed devices (all, if none are listed) as in progress. CL_INVALID_OPERATION if one
  // of them already is, or, for a build or compilation, if kernels are attached.
  cl_int BeginBuild(Step step, const Uint64List& device_ids, const std::string& options);
  // The worker has answered. `state` may lack devices: those fail with the answer. Its words on
  // devices that were not listed are ignored.
  void EndBuild(const Uint64List& device_ids, cl_int status, const pb::ProgramState& state);
  // The worker was not asked, for the reason that becomes the build's log.
  void RefuseBuild(const Uint64List& device_ids, std::string_view why);
  bool IsBuilding() const;
  // True if some device has an executable.
  bool HasExecutable() const;
  // Of a sub-device that nothing was built for, its parent's counts; so in all that is told here.
  bool HasExecutableFor(const Device& device) const;
  // Options of the last step of the device's program.
  std::string OptionsFor(const Device& device) const;

  // Kernels of the program: no build may begin while there are any.
  void AttachKernel();
  void DetachKernel();
  // Takes what a build's answer says of the program's kernels, before EndBuild.
  void LearnKernels(const pb::Answer& answer);
  // All of them, in the driver's order, if the last build told and there is one device (of several,
  // the driver says whether they agree on a kernel); else none.
  std::vector<std::string> KernelNames() const;
  // False: KernelNames() has none. `kernel` is null if none of them is that.
  bool KnowsKernels(const std::string& name, std::shared_ptr<KernelMetadata>* kernel) const;
  // One description per name and build, shared by the kernels that were made of it.
  std::shared_ptr<KernelMetadata> Metadata(const pb::KernelDescription& description);

  cl_int GetInfo(cl_program_info param_name, const InfoSink& sink);
  cl_int GetBuildInfo(const Device& device, cl_program_build_info param_name, const InfoSink& sink);

 private:
  struct BuildState {
    cl_build_status status = CL_BUILD_NONE;
    cl_program_binary_type binary_type = CL_PROGRAM_BINARY_TYPE_NONE;
    std::string options;
    std::string log;  // The worker's own; empty: the driver has one.
  };

  cl_int GetBinaries(const InfoSink& sink);
  bool ListedLocked(size_t index, const Uint64List& device_ids) const;
  // The device's own code: none if that is neither its own nor an ancestor's.
  std::optional<BuildState> StateFor(const Device& device) const;

  const Ref<Context> context_;
  const Origin origin_;
  const std::string text_;
  std::vector<Ref<Device>> devices_;
  std::vector<Device*> device_pointers_;
  std::atomic<bool> made_{false};

  mutable absl::Mutex mu_;
  std::vector<BuildState> states_ ABSL_GUARDED_BY(mu_);  // As devices_.
  int kernels_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<std::string, std::shared_ptr<KernelMetadata>> metadata_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> kernel_names_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice::client
