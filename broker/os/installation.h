// SPDX-License-Identifier: Apache-2.0
//
// What `sluicectl install` writes into the machine and `uninstall` takes out again: the service,
// its source in the event log, the driver's entry for OpenCL's loader (the driver's path, a DWORD
// of 0, under Khronos' key "Vendors"), and the folder of its configuration, which only
// administrators may change. Files stay where they are. What another folder's sluicectl installed
// is replaced by `install`, which says so, and left by `uninstall`, which says whose it is.
// Repeating either is harmless, and needs an administrator. Several at once do one after the other
// what they have to do. Single thread.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace sluice::os {

struct InstallFlags {
  std::string config_file;
  bool manual = false;
  bool keep = false;  // A service that is there keeps its configuration file and its start.
  bool no_service = false;
  bool no_driver = false;
};

// `done` gets a line for each thing that was done, or left, also before one that fails. Uninstall
// does the other steps if one fails, but for a service that sessions keep from stopping: then it
// does none.
absl::Status Install(const InstallFlags& flags, std::vector<std::string>* done);
absl::Status Uninstall(const InstallFlags& flags, std::vector<std::string>* done);

// The files of this driver that OpenCL's loader is told to load, in its order. Any user may ask.
std::vector<std::string> RegisteredDrivers();

// What the service is doing, or why it ended, and what to do, for who gets no answer from it. Any
// user may ask. "" if the service manager does not say.
std::string DescribeService();

}  // namespace sluice::os
