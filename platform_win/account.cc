// SPDX-License-Identifier: Apache-2.0
#include "platform_win/account.h"

#include <windows.h>
// After windows.h.
#include <sddl.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "platform_win/handle_table.h"
#include "platform_win/wide_text.h"

namespace sluice {
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

absl::StatusOr<std::string> SidOfToken(HANDLE token) {
  alignas(TOKEN_USER) char buffer[sizeof(TOKEN_USER) + SECURITY_MAX_SID_SIZE];
  DWORD length = 0;
  if (!::GetTokenInformation(token, TokenUser, buffer, sizeof(buffer), &length)) {
    return WindowsStatus(::GetLastError(), "asking a token for its user");
  }
  wchar_t* text = nullptr;
  if (!::ConvertSidToStringSidW(reinterpret_cast<TOKEN_USER*>(buffer)->User.Sid, &text)) {
    return WindowsStatus(::GetLastError(), "writing a SID");
  }
  std::string sid = FromWide(text);
  ::LocalFree(text);
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

}  // namespace sluice
