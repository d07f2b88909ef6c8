// SPDX-License-Identifier: Apache-2.0
#include "platform_win/security/account.h"

#include <windows.h>
// After windows.h.
#include <sddl.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <vector>

#include "absl/strings/str_cat.h"
#include "platform_win/handles/handle_table.h"
#include "platform_win/wide_text.h"

namespace sluice::os {
namespace {

struct Users {
  std::mutex mutex;
  std::vector<std::string> sids;
};

Users& TheUsers() {
  static Users* users = new Users;
  return *users;
}

}  // namespace

std::string TextOfSid(PSID sid) {
  wchar_t* text = nullptr;
  if (!::ConvertSidToStringSidW(sid, &text)) return "";
  std::string result = FromWide(text);
  ::LocalFree(text);
  return result;
}

std::string NameOfSid(PSID sid) {
  wchar_t name[256];
  wchar_t domain[256];
  DWORD name_length = std::size(name);
  DWORD domain_length = std::size(domain);
  SID_NAME_USE use;
  if (!::LookupAccountSidW(nullptr, sid, name, &name_length, domain, &domain_length, &use)) {
    return TextOfSid(sid);
  }
  return domain_length == 0 ? FromWide(name) : absl::StrCat(FromWide(domain), "\\", FromWide(name));
}

bool IsGroup(PSID sid, SID_NAME_USE use) {
  if (use == SidTypeUser) return false;
  if (use != SidTypeWellKnownGroup) return true;
  // The system gives the same kind to its own accounts, and to those of services (S-1-5-80-, and
  // five numbers).
  const bool is_account = ::IsWellKnownSid(sid, WinLocalSystemSid) ||
                          ::IsWellKnownSid(sid, WinLocalServiceSid) ||
                          ::IsWellKnownSid(sid, WinNetworkServiceSid);
  return !is_account && *::GetSidSubAuthorityCount(sid) < 6;
}

absl::StatusOr<std::string> SidOfToken(HANDLE token) {
  alignas(TOKEN_USER) char buffer[sizeof(TOKEN_USER) + SECURITY_MAX_SID_SIZE];
  DWORD length = 0;
  if (!::GetTokenInformation(token, TokenUser, buffer, sizeof(buffer), &length)) {
    return WindowsStatus(::GetLastError(), "asking a token for its user");
  }
  std::string sid = TextOfSid(reinterpret_cast<TOKEN_USER*>(buffer)->User.Sid);
  if (sid.empty()) return WindowsStatus(::GetLastError(), "writing a SID");
  return sid;
}

const std::string& OwnSid() {
  static const std::string* sid = [] {
    HANDLE token = nullptr;
    if (!::OpenProcessToken(::GetCurrentProcess(), TOKEN_QUERY, &token)) return new std::string;
    const OwnedHandle owned(token);
    return new std::string(SidOfToken(token).value_or(""));
  }();
  return *sid;
}

std::string OwnDefaultOwner() {
  HANDLE opened = nullptr;
  if (!::OpenProcessToken(::GetCurrentProcess(), TOKEN_QUERY, &opened)) return "";
  const OwnedHandle token(opened);
  alignas(TOKEN_OWNER) char buffer[sizeof(TOKEN_OWNER) + SECURITY_MAX_SID_SIZE];
  DWORD length = 0;
  if (!::GetTokenInformation(token.get(), TokenOwner, buffer, sizeof(buffer), &length)) return "";
  return TextOfSid(reinterpret_cast<TOKEN_OWNER*>(buffer)->Owner);
}

DWORD IntegrityOfToken(HANDLE token) {
  alignas(TOKEN_MANDATORY_LABEL) char buffer[sizeof(TOKEN_MANDATORY_LABEL) + SECURITY_MAX_SID_SIZE];
  DWORD length = 0;
  if (!::GetTokenInformation(token, TokenIntegrityLevel, buffer, sizeof(buffer), &length)) return 0;
  PSID sid = reinterpret_cast<TOKEN_MANDATORY_LABEL*>(buffer)->Label.Sid;
  const BYTE count = *::GetSidSubAuthorityCount(sid);
  return count == 0 ? 0 : *::GetSidSubAuthority(sid, count - 1);
}

DWORD OwnIntegrity() {
  HANDLE token = nullptr;
  if (!::OpenProcessToken(::GetCurrentProcess(), TOKEN_QUERY, &token)) {
    return SECURITY_MANDATORY_SYSTEM_RID;  // Not known: the highest, so that nobody has as much.
  }
  return IntegrityOfToken(OwnedHandle(token).get());
}

uint64_t LogonOfToken(HANDLE token) {
  TOKEN_STATISTICS statistics = {};
  DWORD length = 0;
  if (!::GetTokenInformation(token, TokenStatistics, &statistics, sizeof(statistics), &length)) {
    return 0;
  }
  return (static_cast<uint64_t>(static_cast<uint32_t>(statistics.AuthenticationId.HighPart))
          << 32) |
         statistics.AuthenticationId.LowPart;
}

uid_t UserOfSid(const std::string& sid) {
  Users& users = TheUsers();
  const std::lock_guard<std::mutex> lock(users.mutex);
  const auto found = std::find(users.sids.begin(), users.sids.end(), sid);
  const auto number = static_cast<uid_t>(found - users.sids.begin());
  if (found == users.sids.end()) users.sids.push_back(sid);
  return number;
}

std::string SidOfUser(uid_t user) {
  Users& users = TheUsers();
  const std::lock_guard<std::mutex> lock(users.mutex);
  return user < users.sids.size() ? users.sids[user] : "";
}

bool IsSystemSid(const std::string& sid) { return sid == "S-1-5-18"; }
bool IsAdministratorsSid(const std::string& sid) { return sid == "S-1-5-32-544"; }

}  // namespace sluice::os
