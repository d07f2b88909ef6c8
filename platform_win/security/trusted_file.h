// SPDX-License-Identifier: Apache-2.0
//
// Checks the owner of a file or folder, and the accounts that may change it, before a privileged
// process relies on it. Trusted are the system, administrators, and the owner of Windows itself
// (TrustedInstaller; under Wine its one user). Thread-safe.
#pragma once

#include <windows.h>

#include <string>

#include "absl/status/status.h"

namespace sluice::os {

// OK if only trusted accounts own it and may change it; with `or_own_user`, this process's user
// may, too. Otherwise kPermissionDenied, naming the file, the account, and what to do.
absl::Status CheckOnlyTrustedChange(const std::string& path, bool or_own_user);
// The same for an owner and an access list that were read from it; no list: everybody may do
// anything.
absl::Status CheckOnlyTrustedChange(const std::string& path, PSID owner, ACL* list,
                                    bool or_own_user);

// OK if only trusted accounts own the folders above `path`, up to the disk's root, and may rename
// or replace them: whoever may do that decides what the path names. Adding entries to them is
// harmless. Otherwise kPermissionDenied, naming the folder and the account.
absl::Status CheckOnlyTrustedMoveAbove(const std::string& path);
// The same for one folder; a disk's root cannot be moved.
absl::Status CheckOnlyTrustedMove(const std::string& folder, PSID owner, ACL* list, bool is_root);

// Makes the folder one that only the system and administrators may change, and users read. An
// existing one must belong to a trusted account: other owners would keep the files that they have
// put there or hold open.
absl::Status SecureFolder(const std::string& path);

// Makes the folder one that `user` (a SID) may fill as well, also at low integrity. An existing one
// must belong to a trusted account or this process's user.
absl::Status MakeFolderOf(const std::string& user, const std::string& path);

}  // namespace sluice::os
