// SPDX-License-Identifier: Apache-2.0
//
// Whether an address can only be reached from this machine: the one case in which the network needs
// no TLS. Used by the gateway for where it listens and by the client for whom it connects to. A
// name other than localhost never counts: what it resolves to is the resolver's to say.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>

#include <string>
#include <string_view>

namespace sluice {

// `address` is HOST:PORT or [V6]:PORT, with or without "dns:///".
inline bool IsLoopbackTarget(std::string_view address) {
  constexpr std::string_view kScheme = "dns:///";
  if (address.substr(0, kScheme.size()) == kScheme) address.remove_prefix(kScheme.size());
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return false;
  const std::string host(address.substr(0, colon));
  if (host == "localhost" || host == "[::1]") return true;
  in_addr v4;
  return ::inet_pton(AF_INET, host.c_str(), &v4) == 1 && (ntohl(v4.s_addr) >> 24) == 127;
}

}  // namespace sluice
