// SPDX-License-Identifier: Apache-2.0
#include "client_icd/objects/kernel_metadata.h"

#include "client_icd/base/kernel_arg_types.h"

namespace sluice::client {

KernelMetadata::KernelMetadata(pb::KernelDescription description)
    : description_(std::move(description)) {
  for (const pb::KernelArgDescription& arg : description_.args()) {
    rules_.push_back({arg.kind(), ValueTypeBytes(arg.type_name())});
  }
}

const pb::KernelDeviceDescription* KernelMetadata::ForDevice(const Device& device) const {
  const pb::KernelDeviceDescription* found = nullptr;
  for (const Device* at = &device; at != nullptr; at = at->parent()) {
    for (const pb::KernelDeviceDescription& described : description_.devices()) {
      if (described.device_id() != at->id()) continue;
      if (described.work_group_size() != 0) return &described;
      if (found == nullptr) found = &described;
    }
  }
  return found;
}

bool KernelMetadata::IsAccepted(cl_uint index, size_t size) const {
  absl::MutexLock lock(&mu_);
  return accepted_.contains({index, size});
}

void KernelMetadata::Accept(cl_uint index, size_t size) {
  absl::MutexLock lock(&mu_);
  accepted_.insert({index, size});
}

}  // namespace sluice::client
