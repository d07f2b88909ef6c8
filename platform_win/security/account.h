// SPDX-License-Identifier: Apache-2.0
//
// Users on Windows. A user is a SID; the rest of Sluice has a number for it, which this process
// gives out when it first sees one: the same SID has the same number as long as the process lives.
// Thread-safe.
#pragma once

#include <windows.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "broker/os/types.h"

namespace sluice::os {

// "S-1-5-21-...".
absl::StatusOr<std::string> SidOfToken(HANDLE token);
// Of this process; "" if the system does not say.
const std::string& OwnSid();
// The owner of what this process makes, unless it says otherwise: its user, or a group that stands
// for it (administrators, if it is elevated; under Wine one of its own).
std::string OwnDefaultOwner();
// How much the system trusts what the token's process does (SECURITY_MANDATORY_..._RID); 0, which
// is nothing, if it does not say.
DWORD IntegrityOfToken(HANDLE token);
DWORD OwnIntegrity();
// The logon session that the token belongs to; 0 if the system does not say.
uint64_t LogonOfToken(HANDLE token);

std::string TextOfSid(PSID sid);
// An account's name as people know it, else its SID.
std::string NameOfSid(PSID sid);

// True for what the system knows as anything but a user: no process's token names it as its user.
bool IsGroup(PSID sid, SID_NAME_USE use);

uid_t UserOfSid(const std::string& sid);
std::string SidOfUser(uid_t user);

// True for the system's own account.
bool IsSystemSid(const std::string& sid);
// True for the group of administrators, whose what its elevated members make is.
bool IsAdministratorsSid(const std::string& sid);

}  // namespace sluice::os
