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

// What the hidden `list-platforms` subcommand does: says which platforms this process's OpenCL
// loader finds, and whether each of Sluice's opens a context, or what the driver says against it.
// Its own process, since drivers may crash or hang.
int ListPlatformsCommand();

// Whether that file is a driver that an application could load. InvalidArgument says why it is
// none; another error that it could not be tried.
absl::Status CheckDriver(const std::string& path);

// What the hidden `load-library` subcommand does: says whether the driver loads. Its own process,
// since a damaged file may crash it.
int LoadLibraryCommand(const std::string& path);

}  // namespace sluice::ctl
