// SPDX-License-Identifier: Apache-2.0
// The size of a kernel argument that is passed by value, from the name of its type as
// clGetKernelArgInfo gives it. Only OpenCL C's own scalar and vector types have a size that a name
// decides; for all others the driver is asked. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <string_view>

namespace sluice::client {

// Bytes of a value of this type, or 0 if the name is not one of OpenCL C's (OpenCL C 3.0
// sections 6.3.1 and 6.3.2). size_t and its like are not: their size is the device's, and they
// cannot be arguments (section 6.11).
size_t ValueTypeBytes(std::string_view type_name);

}  // namespace sluice::client
