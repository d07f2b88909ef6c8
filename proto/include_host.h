// SPDX-License-Identifier: Apache-2.0
// The folder by which sources reach the include files of the client's host that they name by
// absolute paths. The client writes it into the sources
// (client_icd/program_headers/absolute_includes.h); in the worker's include folder it leads to that
// folder itself (daemon/worker/programs/include_folder.h).
#pragma once

namespace sluice::wire {

inline constexpr char kIncludeHostFolder[] = ".sluice-host";

}  // namespace sluice::wire
