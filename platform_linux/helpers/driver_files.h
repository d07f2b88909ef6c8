// SPDX-License-Identifier: Apache-2.0
//
// The host's files that the broker's children may reach: libraries, and drivers of OpenCL and
// Vulkan with the files that these read. Each child's own files are in worker/worker_files.cc and
// helper_files.cc. Reads the environment that the broker gave. Plain functions, for before there
// are threads.
#pragma once

#include <string>

#include "broker/os/file_access.h"

namespace sluice::os {

// "" if it is not set.
std::string Variable(const char* name);
std::string FolderOf(const std::string& path);

// For every program: libraries, and the files in which the system describes itself.
FileAccess LibraryFiles();

// LibraryFiles and those of drivers: their configuration, files about the machine, device nodes.
FileAccess DriverFiles();

// The programs that compilers in drivers run: linkers (for each kernel, on a CPU), and those that
// make SPIR-V; and the dynamic loader, which starts them.
std::vector<std::string> CompilersPrograms();

}  // namespace sluice::os
