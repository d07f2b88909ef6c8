// SPDX-License-Identifier: Apache-2.0
//
// `sluicectl export-client`: one folder with all that a container, a sandbox or another
// distribution needs to reach a daemon, to be copied or mounted. Main thread only.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace sluice::ctl {

struct ExportFlags {
  std::string folder;
  std::string from;      // "": this sluicectl's own client.
  std::string place;     // The folder's place, as the program sees it; "": kContainerClientFolder.
  bool flatpak = false;  // The layout of Flatpak's GL extensions.
  bool json = false;
};

// OK if an .icd file can name a driver in `place`.
absl::Status CheckPlace(const std::string& place);

int ExportClientCommand(const ExportFlags& flags);

}  // namespace sluice::ctl
