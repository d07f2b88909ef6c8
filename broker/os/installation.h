// SPDX-License-Identifier: Apache-2.0
//
// `sluicectl install` registers Sluice with Windows, and `uninstall` reverses that: the service,
// its source in the event log, the driver's entry for OpenCL's loader, and the folder of the
// configuration, which only administrators may change. (The driver's entry is its path, a DWORD of
// 0, under Khronos' key "Vendors".) Files stay where they are. If another folder's sluicectl has
// installed something, `install` replaces it and says so; `uninstall` leaves it and says whose it
// is. Both need an administrator, and repeating them is harmless. Several at once follow each
// other. Single thread.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace sluice::os {

struct InstallFlags {
  std::string config_file;
  bool manual = false;
  bool keep = false;  // An existing service keeps its configuration file and its start.
  bool no_service = false;
  bool no_driver = false;
};

// `done` gets a line for each step that was done or left, also if a later one fails. Uninstall goes
// on after a failed step, unless sessions keep the service from stopping: then it does nothing.
absl::Status Install(const InstallFlags& flags, std::vector<std::string>* done);
absl::Status Uninstall(const InstallFlags& flags, std::vector<std::string>* done);

// The files of this driver that OpenCL's loader is told to load, in its order. Any user may ask.
std::vector<std::string> RegisteredDrivers();

// The service's state, or why it ended, and what to do, for users who get no answer from it. Any
// user may ask. "" if the service manager does not say.
std::string DescribeService();

}  // namespace sluice::os
