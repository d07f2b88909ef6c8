// SPDX-License-Identifier: Apache-2.0
// The extensions that this driver gives by itself, whatever the real platform and its devices have:
// they are shown in front of those that the worker passes on. Thread-safe: no state.
#pragma once

#include <CL/cl.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

// The platform's own: cl_khr_icd, and the sharing extensions.
std::span<const char* const> OwnPlatformExtensions();
// Every device's own: the sharing extensions.
std::span<const char* const> OwnDeviceExtensions();

// Those that platform and devices have besides if their daemon is on this machine, so that what it
// owns can be mapped here.
std::span<const char* const> LocalExtensions(bool local);

// `list` with the names that it lacks in front of it.
std::string WithExtensions(std::span<const char* const> names, std::string_view list);
// The same for the array that CL_*_EXTENSIONS_WITH_VERSION gives; the names have version 1.0.0.
std::vector<cl_name_version> WithExtensionVersions(std::span<const char* const> names,
                                                   std::string_view array);

// The same with the LocalExtensions besides.
std::vector<cl_name_version> WithLocalVersions(bool local, std::span<const char* const> names,
                                               std::string_view array);

// True if one of the words of `list`, which has blanks between.
bool HasExtensionWord(std::string_view list, std::string_view word);

}  // namespace sluice
