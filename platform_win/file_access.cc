// SPDX-License-Identifier: Apache-2.0
#include "broker/os/file_access.h"

namespace sluice::os {

// A process cannot give up its own access to files. Workers get a restricted token instead, at
// their start (process.cc).
int FileConfinementVersion() { return 0; }

std::string UnconfinedReason() { return ""; }

absl::Status ConfineFiles(const FileAccess&) {
  return absl::UnavailableError("Windows confines a process by its token, when it is started");
}

}  // namespace sluice::os
