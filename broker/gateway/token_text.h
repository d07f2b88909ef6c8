// SPDX-License-Identifier: Apache-2.0
//
// What a bearer token's file may look like: text that any editor has written. Used by the gateway
// for the tokens that it accepts and by the client for the one that it shows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace sluice {

// Some editors begin UTF-8 with a mark.
inline std::string_view WithoutByteOrderMark(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (text.substr(0, kMark.size()) == kMark) text.remove_prefix(kMark.size());
  return text;
}

// Headers together may have 8 KiB (gRPC's default).
inline constexpr size_t kMaxTokenBytes = 4096;

// Whether the header that carries a token can carry this one. UTF-16 cannot be.
inline bool CanBeSent(std::string_view token) {
  return std::all_of(token.begin(), token.end(), [](char c) { return c >= ' ' && c <= '~'; });
}
inline constexpr char kCannotBeSent[] =
    " has bytes that no request can carry: save the file as plain text, in ASCII or UTF-8 "
    "(PowerShell's > writes UTF-16)";

}  // namespace sluice
