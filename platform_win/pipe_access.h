// SPDX-License-Identifier: Apache-2.0
//
// Who may use a pipe of ours, and who is at its other end: the rules, apart from the calls that ask
// the system. Trust: the system's word alone; nothing of it is a client's. Thread-safe.
#pragma once

#include <windows.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace sluice {

// What a client needs of a pipe. GENERIC_WRITE would hold the right to make further instances of
// it, which is the server's.
constexpr DWORD kPipeClientAccess = FILE_GENERIC_READ | FILE_WRITE_DATA | FILE_WRITE_ATTRIBUTES |
                                    FILE_WRITE_EA | READ_CONTROL | SYNCHRONIZE;

// The access list, as SDDL: the system, administrators (who run elevated) and the user `owner` may
// do all; with `others` everybody who has logged on, sandboxed and low-integrity processes too, may
// talk.
std::wstring PipeAccessList(const std::string& owner, bool others);

// A person's logon, as a token has it.
struct Logon {
  std::string sid;
  uint64_t id = 0;  // LogonOfToken.
};
absl::StatusOr<Logon> LogonOf(HANDLE token);

// The client of a pipe, by its token, and the process that the pipe names as the client's. A
// process that has taken the number of one that is gone has another user, or another logon: then
// there is no peer.
bool IsSameLogon(const Logon& client, const Logon& process);

}  // namespace sluice
