// SPDX-License-Identifier: Apache-2.0
#include "proto/told_memory.h"

#include <CL/cl.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace sluice::wire {

void NarrowMemory(uint64_t most, v1::PlatformSnapshot* snapshot) {
  for (auto& platform : *snapshot->mutable_platforms()) {
    for (auto& device : *platform.mutable_devices()) {
      for (v1::InfoValue& info : *device.mutable_info()) {
        if (info.param_name() != CL_DEVICE_GLOBAL_MEM_SIZE &&
            info.param_name() != CL_DEVICE_MAX_MEM_ALLOC_SIZE)
          continue;
        cl_ulong bytes = 0;
        if (info.value().size() != sizeof(bytes)) continue;
        std::memcpy(&bytes, info.value().data(), sizeof(bytes));
        bytes = std::min<cl_ulong>(bytes, most);
        info.set_value(std::string(reinterpret_cast<const char*>(&bytes), sizeof(bytes)));
      }
    }
  }
}

}  // namespace sluice::wire
