// SPDX-License-Identifier: Apache-2.0
#include "platform_win/wide_text.h"

#include <windows.h>

namespace sluice::os {

std::wstring ToWide(std::string_view text) {
  const int length = static_cast<int>(text.size());
  std::wstring wide(
      static_cast<size_t>(::MultiByteToWideChar(CP_UTF8, 0, text.data(), length, nullptr, 0)),
      L'\0');
  ::MultiByteToWideChar(CP_UTF8, 0, text.data(), length, wide.data(),
                        static_cast<int>(wide.size()));
  return wide;
}

std::string FromWide(std::wstring_view text) {
  const int length = static_cast<int>(text.size());
  std::string narrow(static_cast<size_t>(::WideCharToMultiByte(CP_UTF8, 0, text.data(), length,
                                                               nullptr, 0, nullptr, nullptr)),
                     '\0');
  ::WideCharToMultiByte(CP_UTF8, 0, text.data(), length, narrow.data(),
                        static_cast<int>(narrow.size()), nullptr, nullptr);
  return narrow;
}

// Backslashes count only before a quote.
void AppendQuoted(std::string_view word, std::wstring* line) {
  if (!line->empty()) *line += L' ';
  *line += L'"';
  size_t backslashes = 0;
  for (const wchar_t c : ToWide(word)) {
    if (c == L'"') line->append(backslashes + 1, L'\\');
    backslashes = c == L'\\' ? backslashes + 1 : 0;
    *line += c;
  }
  line->append(backslashes, L'\\');
  *line += L'"';
}

}  // namespace sluice::os
