// SPDX-License-Identifier: Apache-2.0
//
// Turns errno into an absl::Status whose message says what was tried. Used inside platform_linux.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace sluice::os {

inline absl::Status ErrnoStatus(int error_number, absl::string_view what) {
  return absl::ErrnoToStatus(error_number, what);
}

}  // namespace sluice::os
