// SPDX-License-Identifier: Apache-2.0
//
// The programs and the driver that the service manager and OpenCL's loader are to be told of: what
// the system, or every program that uses OpenCL, runs from then on. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace sluice::broker {

// Under HKEY_LOCAL_MACHINE: OpenCL's loader knows drivers by the names of its values, each a path.
inline constexpr wchar_t kVendorsKey[] = L"SOFTWARE\\Khronos\\OpenCL\\Vendors";
inline constexpr char kDriverFile[] = "sluice_icd.dll";

// OK if all of `names` lie in `folder`, each a whole program or library (`.dll`) for the processor
// that this one is for, with a path that can be loaded, and are nobody's to change but the
// administrators', nor may anybody lay a library beside them or move them away. Else names the
// file, and says what to do.
absl::Status CheckPrograms(const std::string& folder, const std::vector<std::string>& names);

// Advice for a person who has registered a driver where the system has no loader that would find
// it; "" if it has one.
std::string MissingLoader();

}  // namespace sluice::broker
