// SPDX-License-Identifier: Apache-2.0
// The extensions that this driver gives by itself: they are shown in front of those that the worker
// passes on from the real platform and its devices. Thread-safe: no state.
#pragma once

#include <CL/cl.h>

#include <string>
#include <string_view>
#include <vector>

namespace sluice {

// The platform's own: cl_khr_icd, and the sharing extensions. `shares_resources`: Platform's.
// `passed_on`: the words of the worker's list, from which some follow.
std::vector<const char*> OwnPlatformExtensions(bool shares_resources, std::string_view passed_on);
// Every device's own: the sharing extensions.
std::vector<const char*> OwnDeviceExtensions(bool shares_resources, std::string_view passed_on);

// `list` with the names that it lacks in front of it.
std::string WithExtensions(const std::vector<const char*>& names, std::string_view list);
// The same for the array that CL_*_EXTENSIONS_WITH_VERSION gives; the names have version 1.0.0.
std::vector<cl_name_version> WithExtensionVersions(const std::vector<const char*>& names,
                                                   std::string_view array);

// True if one of the words of `list`, which has blanks between.
bool HasExtensionWord(std::string_view list, std::string_view word);

}  // namespace sluice
