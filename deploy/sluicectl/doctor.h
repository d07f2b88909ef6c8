// SPDX-License-Identifier: Apache-2.0
//
// `sluicectl doctor`: why does an application see no device? Goes the way that an application goes,
// step by step: loader, .icd file, library, endpoint, daemon, devices, a session, and at last the
// loader's own list of platforms and a context on each of ours. Each step is ok, failed with what
// to do, or skipped because an earlier one failed. Main thread only; changes nothing.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "deploy/sluicectl/admin_commands.h"

namespace sluice::ctl {

int DoctorCommand(const CommonFlags& flags);

// The hidden `list-platforms` subcommand: says which platforms this process's OpenCL loader finds,
// and for each of Sluice's whether it opens a context, or why the driver refuses one. In a process
// of its own, since drivers may crash or hang.
int ListPlatformsCommand();

// OK if that file is a driver that an application could load. InvalidArgument says why it is none;
// another error says that it could not be tried.
absl::Status CheckDriver(const std::string& path);

// The hidden `load-library` subcommand: says whether the driver loads. In a process of its own,
// since a damaged file may crash it.
int LoadLibraryCommand(const std::string& path);

}  // namespace sluice::ctl
