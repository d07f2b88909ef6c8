// SPDX-License-Identifier: Apache-2.0
//
// Files that others read while they are replaced: written beside their place and renamed into it,
// so that a reader sees the old one or the new one, whole. Thread-safe.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace sluice::ctl {

// The file has exactly `mode`, whatever the umask.
absl::Status WriteByRename(const std::string& path, std::string_view bytes, mode_t mode);

// A folder and those above it, where they are missing; the new ones can be entered by everybody.
absl::Status MakeFolder(const std::string& path);

}  // namespace sluice::ctl
