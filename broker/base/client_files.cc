// SPDX-License-Identifier: Apache-2.0
#include "broker/base/client_files.h"

#include "absl/strings/str_cat.h"
#include "broker/os/this_process.h"

namespace sluice {

absl::StatusOr<std::string> FindClientFile(const std::string& folder, const std::string& name) {
  for (const char* below : {"", "sluice/", "../lib/sluice/"}) {
    std::string path = absl::StrCat(folder, below, name);
    if (os::IsFileOfThisHost(path)) return path;
  }
  return absl::NotFoundError(absl::StrCat(name, " is not in ", folder, " nor in ", folder,
                                          "sluice: install all of Sluice's client"));
}

}  // namespace sluice
