// SPDX-License-Identifier: Apache-2.0
//
// The places of the files of Sluice's client: libraries and programs that the driver, libsluice and
// sluicectl load or start. The one list of the places where an installation or a build tree has
// them. Thread-safe.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace sluice {

// The path of a file that lies in `folder` (that of one of the client's libraries, with the
// separator at its end), in sluice/ below it, or in ../lib/sluice. kNotFound names the places.
absl::StatusOr<std::string> FindClientFile(const std::string& folder, const std::string& name);

}  // namespace sluice
