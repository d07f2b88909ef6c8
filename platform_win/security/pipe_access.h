// SPDX-License-Identifier: Apache-2.0
//
// The rules about pipes: who may use one of ours, and which peer is believed. The calls that ask
// the system are elsewhere. Trusts the system's answers alone, and nothing from a client.
// Thread-safe.
#pragma once

#include <windows.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "broker/os/types.h"

namespace sluice::os {

// The rights that a client needs on a pipe. GENERIC_WRITE would include the server's right to make
// further instances of it.
constexpr DWORD kPipeClientAccess = FILE_GENERIC_READ | FILE_WRITE_DATA | FILE_WRITE_ATTRIBUTES |
                                    FILE_WRITE_EA | READ_CONTROL | SYNCHRONIZE;

// The owner of a pipe, or of the process that would use it.
struct PipeUser {
  std::string sid;
  DWORD integrity = 0;  // IntegrityOfToken.
};
// True if a client may trust a pipe's owner, which will name handles in the client's process.
// Anybody can make a pipe of a free name, also the name of a daemon that does not run. `owner` is
// the pipe's, with the integrity of the process that made it. A process of the same user with less
// integrity (a worker, a browser's page) must not have power over one with more; nor could it open
// that process to serve it.
bool MayServe(const PipeUser& owner, const PipeUser& client);

// Others who may talk through a pipe besides the system, administrators and its owner.
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

// Compares a pipe's client, by its token, with the process that the pipe names as the client's. If
// that process is gone and another one has its number, user or logon differ: then there is no peer.
bool IsSameLogon(const Logon& client, const Logon& process);

}  // namespace sluice::os
