// SPDX-License-Identifier: Apache-2.0
//
// Whom a file or folder belongs to and who may change it, where a process with rights believes what
// it says. Trusted are the system, administrators, and who owns Windows itself (TrustedInstaller;
// under Wine its one user). Thread-safe.
#pragma once

#include <windows.h>

#include <string>

#include "absl/status/status.h"

namespace sluice::os {

// OK if nobody else owns it or may change it; with `or_own_user` this process's user neither
// counts. Otherwise kPermissionDenied, naming the file, who it is, and what to do.
absl::Status CheckOnlyTrustedChange(const std::string& path, bool or_own_user);
// The same, of an owner and an access list that were read of it; no list: everybody may do
// anything.
absl::Status CheckOnlyTrustedChange(const std::string& path, PSID owner, ACL* list,
                                    bool or_own_user);

// OK if nobody else owns a folder above `path`, up to the disk's root, or may rename it or put
// another in its place: who may do that decides what the path names. To add to one is harmless.
// Otherwise kPermissionDenied, naming the folder and who it is.
absl::Status CheckOnlyTrustedMoveAbove(const std::string& path);
// The same of one folder, as above; nobody moves a disk's root.
absl::Status CheckOnlyTrustedMove(const std::string& folder, PSID owner, ACL* list, bool is_root);

// Makes the folder one that only the system and administrators change and users read. One that is
// there must be trusted's already: what its owner has put there, or holds open, would stay his.
absl::Status SecureFolder(const std::string& path);

// Makes the folder one that `user` (a SID) fills as well, at low integrity too. One that is there
// must be trusted's, or this process's user's, already.
absl::Status MakeFolderOf(const std::string& user, const std::string& path);

}  // namespace sluice::os
