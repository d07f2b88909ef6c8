// SPDX-License-Identifier: Apache-2.0
//
// A helper's own tree of files (Linux): a root in memory, which shows the files and folders of its
// list (broker/os/file_access.h) by their own names, and of the host nothing else. Everything that
// is no driver's business is not refused, it is not there. File access is confined in it as before.
#pragma once

#include "absl/status/status.h"
#include "broker/os/file_access.h"

namespace sluice::os {

// After EnterNamespaces, by whose right it mounts, and before capabilities are given up. Readable
// and executable files can only be read there, whatever rights they have, and no set-user-ID bit
// and no device node counts but those of `access.devices`. The working directory is the root.
// Names that lead nowhere are left out, and links to what is shown are there.
absl::Status EnterPrivateRoot(const FileAccess& access);

}  // namespace sluice::os
