// SPDX-License-Identifier: Apache-2.0
#include "broker/base/host_port.h"

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

}  // namespace

bool IsHostAndPort(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || !IsPort(text.substr(colon + 1)))
    return false;
  const std::string_view host = text.substr(0, colon);
  if (host.front() == '[' || host.back() == ']')
    return host.size() > 2 && host.front() == '[' && host.back() == ']';
  return host.find(':') == std::string_view::npos;
}

}  // namespace sluice
