// SPDX-License-Identifier: Apache-2.0
#include "broker/os/installation.h"

#include <windows.h>

#include "absl/strings/match.h"
#include "platform_win/broker/programs.h"
#include "platform_win/wide_text.h"

namespace sluice::os {

std::vector<std::string> RegisteredDrivers() {
  std::vector<std::string> drivers;
  HKEY key = nullptr;
  if (::RegOpenKeyExW(HKEY_LOCAL_MACHINE, broker::kVendorsKey, 0, KEY_QUERY_VALUE | KEY_WOW64_64KEY,
                      &key) != ERROR_SUCCESS) {
    return drivers;
  }
  std::wstring name(32768, L'\0');
  for (DWORD index = 0;; ++index) {
    auto length = static_cast<DWORD>(name.size());
    DWORD type = 0;
    DWORD value = 1;
    DWORD bytes = sizeof(value);
    const LSTATUS result = ::RegEnumValueW(key, index, name.data(), &length, nullptr, &type,
                                           reinterpret_cast<BYTE*>(&value), &bytes);
    if (result == ERROR_MORE_DATA) continue;  // It is longer than a number.
    if (result != ERROR_SUCCESS) break;
    const std::string path = FromWide(name.substr(0, length));
    // Loaders skip a value whose number is not 0.
    if (type == REG_DWORD && value == 0 && absl::EndsWithIgnoreCase(path, broker::kDriverFile))
      drivers.push_back(path);
  }
  ::RegCloseKey(key);
  return drivers;
}

}  // namespace sluice::os
