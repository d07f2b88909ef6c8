// SPDX-License-Identifier: Apache-2.0
// Sources that name a file by its absolute path: `#include "/opt/app/kernels/x.h"`. That is a file
// of the application's host, which the client sends along (includes.h); the worker's host may have
// another one of that name, or a secret. So every such path is written relative to a folder that
// only our include files have, before the source leaves this process:
//
//   #include "/opt/app/x.h"   ->   #include ".sluice-host/opt/app/x.h"
//
// and so is a relative one, if this host has other separators than slashes.
// Textual, as the scan for include files is. The worker's confinement keeps a path that is
// overlooked here away from its host's files (daemon/worker/worker_files.h). Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>

namespace sluice::client {

// Blank as the preprocessor sees it, within a line.
inline bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

// Directives that read files, tests for files, and macros that are the path of a file of this host.
std::string RewriteAbsoluteIncludes(std::string_view text);

}  // namespace sluice::client
