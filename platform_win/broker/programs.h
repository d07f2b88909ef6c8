// SPDX-License-Identifier: Apache-2.0
//
// Checks the programs and the driver before they are registered with the service manager and
// OpenCL's loader. From then on the system, and every program that uses OpenCL, runs them.
// Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace sluice::broker {

// Under HKEY_LOCAL_MACHINE: OpenCL's loader knows drivers by the names of its values, each a path.
inline constexpr wchar_t kVendorsKey[] = L"SOFTWARE\\Khronos\\OpenCL\\Vendors";
inline constexpr char kDriverFile[] = "sluice_icd.dll";

// OK if all of `names` lie in `folder`, each a whole program or library (`.dll`) for this program's
// processor, with a path that can be loaded. Only administrators may be able to change them, to put
// a library beside them, or to move them. Else names the file, and says what to do.
absl::Status CheckPrograms(const std::string& folder, const std::vector<std::string>& names);

// Advice for a person who has registered a driver on a system without OpenCL's loader; "" if it has
// one.
std::string MissingLoader();

}  // namespace sluice::broker
