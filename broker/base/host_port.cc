// SPDX-License-Identifier: Apache-2.0
#include "broker/base/host_port.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace sluice {
namespace {

bool IsPort(std::string_view text) {
  if (text.empty() || text.size() > 5) return false;
  uint32_t number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    number = number * 10 + static_cast<uint32_t>(c - '0');
  }
  return number >= 1 && number <= 65535;
}

// `text` is the part between brackets: "::1", "fe80::1%eth0".
bool IsV6(std::string_view text) {
  const std::string_view address = text.substr(0, text.find('%'));
  return std::count(address.begin(), address.end(), ':') >= 2 &&
         address.find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos;
}

// No name or address has one of these: an IPv6 address without brackets, a URL, a login.
bool IsNameOrV4(std::string_view text) {
  return !text.empty() && std::none_of(text.begin(), text.end(), [](char c) {
    return (c >= 0 && c <= ' ') || c == 0x7f ||
           std::string_view(":/?#@[]\\\"'").find(c) != std::string_view::npos;
  });
}

}  // namespace

bool IsHostAndPort(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || !IsPort(text.substr(colon + 1)))
    return false;
  const std::string_view host = text.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') return IsV6(host.substr(1, host.size() - 2));
  return IsNameOrV4(host);
}

}  // namespace sluice
