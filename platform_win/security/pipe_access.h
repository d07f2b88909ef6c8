// SPDX-License-Identifier: Apache-2.0
//
// Who may use a pipe of ours, and who is at its other end: the rules, apart from the calls that ask
// the system. Trust: the system's word alone; nothing of it is a client's. Thread-safe.
#pragma once

#include <windows.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "broker/os/types.h"

namespace sluice::os {

// The rights that a client needs on a pipe. GENERIC_WRITE would hold the right to make further
// instances of it, which is the server's.
constexpr DWORD kPipeClientAccess = FILE_GENERIC_READ | FILE_WRITE_DATA | FILE_WRITE_ATTRIBUTES |
                                    FILE_WRITE_EA | READ_CONTROL | SYNCHRONIZE;

// The owner of a pipe, or of the process that would use it.
struct PipeUser {
  std::string sid;
  DWORD integrity = 0;  // IntegrityOfToken.
};
// True if a client may believe a pipe's owner: a server names handles in its clients. Anybody can
// make a pipe of any name that is free, that of a daemon which does not run, too. `owner` is the
// pipe's, with the integrity of the process that made it. A process of the same user with less
// integrity (a worker, a page of a browser) must not have power over one with more; nor could it
// serve that one, whose process it may not open.
bool MayServe(const PipeUser& owner, const PipeUser& client);

// Those who may talk through a pipe besides the system, administrators and its owner.
enum class PipeOthers {
  kNobody,
  kMonitors,   // The machine's group "Performance Monitor Users".
  kEverybody,  // All who have logged on, sandboxed and low-integrity processes too.
};
PipeOthers PipeOthersOfMode(mode_t mode);  // 0600, 0660, 0666.

// The access list, as SDDL: the system, administrators (who run elevated) and the user `owner` may
// do all, `others` may talk.
std::wstring PipeAccessList(const std::string& owner, PipeOthers others);

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

}  // namespace sluice::os
