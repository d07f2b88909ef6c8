// SPDX-License-Identifier: Apache-2.0
//
// Which driver a device has, where client or worker must know a driver's own ways. Both ask here.
#pragma once

#include <string_view>

namespace sluice {

// `device_version`: CL_DEVICE_VERSION, "OpenCL 3.0 PoCL HSTR: ...".
inline bool IsPocl(std::string_view device_version) {
  return device_version.find(" PoCL") != std::string_view::npos;
}

}  // namespace sluice
