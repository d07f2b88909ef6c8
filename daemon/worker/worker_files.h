// SPDX-License-Identifier: Apache-2.0
// The host's files that a worker needs: the parts that OpenCL drivers and their compilers are made
// of, device nodes, what they read about the machine, and the caches that are this worker's.
// Everything else is the host's business, and out of reach from before the first driver is loaded
// (broker/os/file_access.h). Confined once, by main, before any other thread.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace sluice::os {
struct FileAccess;
}  // namespace sluice::os

namespace sluice::worker {

// From the environment that the broker gave; `more` is what the operator adds for reading, and
// `programs` to be run: else only the linkers and such of compilers are.
os::FileAccess WorkerFileAccess(const std::vector<std::string>& more,
                                const std::vector<std::string>& programs = {});

// Goes to the folder of temporary files. Compilers take a header for one beside the source if it is
// in the current folder: in the daemon's there may be one that the worker may not read,
// and the build would end. On Windows nothing.
void LeaveDaemonsFolder();

// Shows all these in a root of its own, in which nothing else is (private_root.h).
absl::Status EnterWorkersRoot(const std::vector<std::string>& more,
                              const std::vector<std::string>& programs);

// In such a root if it is to have one. kUnavailable if this kernel cannot confine it: then the
// worker reaches what its user may there.
absl::Status ConfineWorkerFiles(const std::vector<std::string>& more,
                                const std::vector<std::string>& programs = {},
                                bool private_root = false);

// The folder of compiled programs of a driver that does not bound it; "" if that is not known.
std::string CompileCacheFolder();

// Drivers say nothing but that they have no device if they cannot read their list or write to their
// cache. This names the first such folder of the environment's, why it is out of this user's reach,
// and what to do. "" if there is none.
std::string UnusableFolder();

}  // namespace sluice::worker
