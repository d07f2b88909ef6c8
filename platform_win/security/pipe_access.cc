// SPDX-License-Identifier: Apache-2.0
#include "platform_win/security/pipe_access.h"

#include <utility>

#include "platform_win/security/account.h"
#include "platform_win/wide_text.h"

namespace sluice::os {

PipeOthers PipeOthersOfMode(mode_t mode) {
  if ((mode & 02) != 0) return PipeOthers::kEverybody;
  return (mode & 020) != 0 ? PipeOthers::kMonitors : PipeOthers::kNobody;
}

std::wstring PipeAccessList(const std::string& owner, PipeOthers others) {
  const std::wstring list = L"D:P(A;;GA;;;SY)(A;;GA;;;BA)(A;;GA;;;" + ToWide(owner) + L")";
  switch (others) {
    case PipeOthers::kNobody:
      return list;
    case PipeOthers::kMonitors:
      return list + L"(A;;0x12019b;;;S-1-5-32-558)";
    case PipeOthers::kEverybody:
      break;
  }
  return list + L"(A;;0x12019b;;;AU)(A;;0x12019b;;;S-1-15-2-1)S:(ML;;NW;;;LW)";
}

bool MayServe(const PipeUser& owner, const PipeUser& client) {
  if (IsSystemSid(owner.sid) || IsAdministratorsSid(owner.sid)) return true;
  if (owner.sid.empty() || owner.sid != client.sid) return false;
  // A sandboxed client cannot ask about others, and nobody has less integrity than it.
  return client.integrity <= SECURITY_MANDATORY_LOW_RID || owner.integrity >= client.integrity;
}

absl::StatusOr<Logon> LogonOf(HANDLE token) {
  absl::StatusOr<std::string> sid = SidOfToken(token);
  if (!sid.ok()) return sid.status();
  return Logon{*std::move(sid), LogonOfToken(token)};
}

bool IsSameLogon(const Logon& client, const Logon& process) {
  return !client.sid.empty() && client.sid == process.sid && client.id == process.id;
}

}  // namespace sluice::os
