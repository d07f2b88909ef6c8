// SPDX-License-Identifier: Apache-2.0
//
// Finds out if an address can only be reached from this machine: the one case in which the network
// needs no TLS. Used by the daemon for where it listens and by the client for whom it connects to.
// A name other than localhost never counts: what it resolves to is the resolver's to say.
#pragma once

#include <string_view>

namespace sluice::wire {

// Four decimal numbers up to 255, as inet_pton takes them, the first of them 127.
inline bool IsLoopbackV4(std::string_view host) {
  int numbers = 0;
  while (true) {
    const std::string_view digits = host.substr(0, host.find('.'));
    if (digits.empty() || digits.size() > 3 || (digits.size() > 1 && digits[0] == '0'))
      return false;
    int value = 0;
    for (const char digit : digits) {
      if (digit < '0' || digit > '9') return false;
      value = value * 10 + (digit - '0');
    }
    if (value > 255 || (numbers == 0 && value != 127)) return false;
    ++numbers;
    if (digits.size() == host.size()) return numbers == 4;
    host.remove_prefix(digits.size() + 1);
  }
}

// `address` is HOST:PORT or [V6]:PORT, with or without "dns:///".
inline bool IsLoopbackTarget(std::string_view address) {
  constexpr std::string_view kScheme = "dns:///";
  if (address.substr(0, kScheme.size()) == kScheme) address.remove_prefix(kScheme.size());
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view host = address.substr(0, colon);
  if (host == "localhost" || host == "[::1]") return true;
  return IsLoopbackV4(host);
}

}  // namespace sluice::wire
