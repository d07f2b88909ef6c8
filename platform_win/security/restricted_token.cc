// SPDX-License-Identifier: Apache-2.0
#include "platform_win/security/restricted_token.h"

#include <windows.h>

#include <iterator>
#include <vector>

#include "platform_win/security/account.h"

namespace sluice::os {
namespace {

// Windows' account for services that need few rights. Its name is in the system's language. The
// system may log it on without a password.
absl::StatusOr<OwnedHandle> LogOnLocalService() {
  alignas(SID) char sid[SECURITY_MAX_SID_SIZE];
  DWORD length = sizeof(sid);
  wchar_t name[256];
  wchar_t domain[256];
  DWORD name_length = std::size(name);
  DWORD domain_length = std::size(domain);
  SID_NAME_USE use;
  if (!::CreateWellKnownSid(WinLocalServiceSid, nullptr, sid, &length) ||
      !::LookupAccountSidW(nullptr, sid, name, &name_length, domain, &domain_length, &use)) {
    return WindowsStatus(::GetLastError(), "asking for the account LocalService");
  }
  const auto log_on = [](const wchar_t* user, const wchar_t* of) {
    HANDLE token = nullptr;
    return OwnedHandle(
        ::LogonUserW(user, of, nullptr, LOGON32_LOGON_SERVICE, LOGON32_PROVIDER_DEFAULT, &token)
            ? token
            : nullptr);
  };
  OwnedHandle token = log_on(name, domain);
  if (!token.valid()) token = log_on(L"LocalService", L"NT AUTHORITY");  // The documented name.
  if (!token.valid()) {
    return WindowsStatus(::GetLastError(), "logging LocalService on for a child");
  }
  return token;
}

// The primary token to start from; never the system's own, which may do anything.
absl::StatusOr<OwnedHandle> BaseToken() {
  if (IsSystemSid(OwnSid())) return LogOnLocalService();
  HANDLE token = nullptr;
  constexpr DWORD kAccess =
      TOKEN_DUPLICATE | TOKEN_ASSIGN_PRIMARY | TOKEN_QUERY | TOKEN_ADJUST_DEFAULT;
  if (!::OpenProcessToken(::GetCurrentProcess(), kAccess, &token)) {
    return WindowsStatus(::GetLastError(), "opening our own token");
  }
  return OwnedHandle(token);
}

// At low integrity a process may not write to its user's other objects.
absl::Status SetLowIntegrity(HANDLE token) {
  SID_IDENTIFIER_AUTHORITY authority = SECURITY_MANDATORY_LABEL_AUTHORITY;
  PSID sid = nullptr;
  if (!::AllocateAndInitializeSid(&authority, 1, SECURITY_MANDATORY_LOW_RID, 0, 0, 0, 0, 0, 0, 0,
                                  &sid)) {
    return WindowsStatus(::GetLastError(), "naming the low integrity level");
  }
  TOKEN_MANDATORY_LABEL label = {};
  label.Label.Attributes = SE_GROUP_INTEGRITY;
  label.Label.Sid = sid;
  const bool set = ::SetTokenInformation(token, TokenIntegrityLevel, &label,
                                         sizeof(label) + ::GetLengthSid(sid));
  const DWORD error = ::GetLastError();
  ::FreeSid(sid);
  return set ? absl::OkStatus() : WindowsStatus(error, "lowering a token's integrity");
}

// All but the right to pass through folders.
std::vector<LUID_AND_ATTRIBUTES> PrivilegesToLose(HANDLE token) {
  LUID keep = {};
  ::LookupPrivilegeValueW(nullptr, L"SeChangeNotifyPrivilege", &keep);
  alignas(TOKEN_PRIVILEGES) char buffer[4096];
  DWORD length = 0;
  std::vector<LUID_AND_ATTRIBUTES> lost;
  if (!::GetTokenInformation(token, TokenPrivileges, buffer, sizeof(buffer), &length)) return lost;
  const auto* all = reinterpret_cast<const TOKEN_PRIVILEGES*>(buffer);
  for (DWORD i = 0; i < all->PrivilegeCount; ++i) {
    const LUID& luid = all->Privileges[i].Luid;
    if (luid.LowPart != keep.LowPart || luid.HighPart != keep.HighPart) {
      lost.push_back(all->Privileges[i]);
    }
  }
  return lost;
}

}  // namespace

absl::StatusOr<OwnedHandle> CreateRestrictedChildToken() {
  absl::StatusOr<OwnedHandle> base = BaseToken();
  if (!base.ok()) return base.status();
  SID_IDENTIFIER_AUTHORITY authority = SECURITY_NT_AUTHORITY;
  SID_AND_ATTRIBUTES administrators = {};
  if (!::AllocateAndInitializeSid(&authority, 2, SECURITY_BUILTIN_DOMAIN_RID,
                                  DOMAIN_ALIAS_RID_ADMINS, 0, 0, 0, 0, 0, 0, &administrators.Sid)) {
    return WindowsStatus(::GetLastError(), "naming the administrators");
  }
  // The flag leaves the one privilege that everybody has; Wine 8 uses the list alone.
  std::vector<LUID_AND_ATTRIBUTES> privileges = PrivilegesToLose(base->get());
  HANDLE restricted = nullptr;
  const bool made = ::CreateRestrictedToken(base->get(), DISABLE_MAX_PRIVILEGE, 1, &administrators,
                                            static_cast<DWORD>(privileges.size()),
                                            privileges.data(), 0, nullptr, &restricted);
  const DWORD error = ::GetLastError();
  ::FreeSid(administrators.Sid);
  if (!made) return WindowsStatus(error, "restricting a token");
  OwnedHandle token(restricted);
  if (absl::Status low = SetLowIntegrity(token.get()); !low.ok()) return low;
  return token;
}

}  // namespace sluice::os
