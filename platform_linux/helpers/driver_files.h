// SPDX-License-Identifier: Apache-2.0
//
// Where on a host libraries, and drivers of OpenCL and Vulkan with what they ask of it, are: what
// the broker's children are let to of its files, beside what is each one's own
// (worker/worker_files.cc, helper_files.cc). From the environment that the broker gave. Plain
// functions, for before there are threads.
#pragma once

#include <string>

#include "broker/os/file_access.h"

namespace sluice::os {

// "" if it is not set.
std::string Variable(const char* name);
std::string FolderOf(const std::string& path);

// The parts of a program: libraries, and what the system tells of itself.
FileAccess LibraryFiles();

// And drivers: their configuration, what they ask about the machine, device nodes.
FileAccess DriverFiles();

// The programs that compilers in drivers run: linkers (of each kernel, on a CPU), and what makes
// SPIR-V. With what starts them, the dynamic loader.
std::vector<std::string> CompilersPrograms();

}  // namespace sluice::os
