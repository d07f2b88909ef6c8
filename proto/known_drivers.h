// SPDX-License-Identifier: Apache-2.0
//
// Which driver a device has, where client or worker must know a driver's own ways. Both ask here.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice {

// `device_version`: CL_DEVICE_VERSION, "OpenCL 3.0 PoCL HSTR: ...".
inline bool IsPocl(std::string_view device_version) {
  return device_version.find(" PoCL") != std::string_view::npos;
}

// `vendor_id`: CL_DEVICE_VENDOR_ID, by the PCI SIG.
inline bool IsNvidia(uint32_t vendor_id) { return vendor_id == 0x10de; }

}  // namespace sluice
