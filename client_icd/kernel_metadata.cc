// SPDX-License-Identifier: Apache-2.0
#include "client_icd/kernel_metadata.h"

#include "client_icd/kernel_arg_types.h"

namespace sluice {

KernelMetadata::KernelMetadata(pb::KernelDescription description)
    : description_(std::move(description)) {
  for (const pb::KernelArgDescription& arg : description_.args()) {
    rules_.push_back({arg.kind(), ValueTypeBytes(arg.type_name())});
  }
}

const pb::KernelDeviceDescription* KernelMetadata::ForDevice(uint64_t device_id) const {
  for (const pb::KernelDeviceDescription& device : description_.devices()) {
    if (device.device_id() == device_id) return &device;
  }
  return nullptr;
}

bool KernelMetadata::IsAccepted(cl_uint index, size_t size) const {
  absl::MutexLock lock(&mu_);
  return accepted_.contains({index, size});
}

void KernelMetadata::Accept(cl_uint index, size_t size) {
  absl::MutexLock lock(&mu_);
  accepted_.insert({index, size});
}

}  // namespace sluice
