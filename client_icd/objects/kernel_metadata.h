// SPDX-License-Identifier: Apache-2.0
// The client's knowledge of a kernel of a built program: the worker's description, the sizes its
// arguments must have, and the sizes that the driver has accepted where no rule gives one. Shared
// by the kernels made of one name and build. Thread-safe: constant but for the accepted sizes,
// which have a lock.
#pragma once

#include <CL/cl.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client_icd/objects/device.h"
#include "proto/command.pb.h"

namespace sluice::client {

class KernelMetadata {
 public:
  explicit KernelMetadata(pb::KernelDescription description);

  const std::string& name() const { return description_.name(); }
  const std::string& attributes() const { return description_.attributes(); }
  cl_uint arg_count() const { return static_cast<cl_uint>(rules_.size()); }
  const pb::KernelArgDescription& arg(cl_uint index) const {
    return description_.args(static_cast<int>(index));
  }
  // Of an argument that is passed by value; 0 if its type's name does not say.
  size_t value_bytes(cl_uint index) const { return rules_[index].value_bytes; }
  pb::KernelArgDescription::Kind kind(cl_uint index) const { return rules_[index].kind; }
  // Of a sub-device, its parent's if the driver tells of that alone. Null if neither is the
  // program's.
  const pb::KernelDeviceDescription* ForDevice(const Device& device) const;

  // The driver has accepted a value of this size for this argument.
  bool IsAccepted(cl_uint index, size_t size) const;
  void Accept(cl_uint index, size_t size);

 private:
  struct ArgRule {
    pb::KernelArgDescription::Kind kind;
    size_t value_bytes;
  };

  const pb::KernelDescription description_;
  std::vector<ArgRule> rules_;  // All that setting an argument looks at, together.

  mutable absl::Mutex mu_;
  std::set<std::pair<cl_uint, size_t>> accepted_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice::client
