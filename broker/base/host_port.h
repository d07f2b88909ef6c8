// SPDX-License-Identifier: Apache-2.0
// The one form that a network address has, in the daemon's configuration as in SLUICE_ENDPOINT.
#pragma once

#include <string_view>

namespace sluice {

// HOST:PORT or [IPV6]:PORT with a port from 1 to 65535: an IPv6 address without brackets would lose
// its last group to the port.
bool IsHostAndPort(std::string_view text);

}  // namespace sluice
