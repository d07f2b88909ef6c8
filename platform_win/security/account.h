// SPDX-License-Identifier: Apache-2.0
//
// Users on Windows. A user is a SID; the rest of Sluice has a number for it. This process gives out
// a number when it first sees a SID, which keeps it as long as the process lives. Thread-safe.
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
// The default owner of objects that this process makes: its user, or a group that stands for it
// (administrators, if it is elevated; under Wine one of its own).
std::string OwnDefaultOwner();
// The integrity level of the token's process (SECURITY_MANDATORY_..._RID); 0, the lowest, if the
// system does not say.
DWORD IntegrityOfToken(HANDLE token);
DWORD OwnIntegrity();
// The logon session that the token belongs to; 0 if the system does not say.
uint64_t LogonOfToken(HANDLE token);

std::string TextOfSid(PSID sid);
// An account's name as people know it, else its SID.
std::string NameOfSid(PSID sid);

// True if the system knows the SID as anything but a user: no process's token has it as its user.
bool IsGroup(PSID sid, SID_NAME_USE use);

uid_t UserOfSid(const std::string& sid);
std::string SidOfUser(uid_t user);

// True for the system's own account.
bool IsSystemSid(const std::string& sid);
// True for the group of administrators, which owns the objects that its elevated members make.
bool IsAdministratorsSid(const std::string& sid);

}  // namespace sluice::os
