// SPDX-License-Identifier: Apache-2.0
#include "broker/os/listen_port.h"

#include <winsock2.h>
// After winsock2.h.
#include <windows.h>
#include <ws2tcpip.h>

#include "absl/strings/str_cat.h"
#include "platform_win/handles/handle_table.h"

namespace sluice::os {
namespace {

// For the rest of the process's life, beside gRPC's own.
int StartSockets() {
  static const int error = [] {
    WSADATA about;
    return ::WSAStartup(MAKEWORD(2, 2), &about);
  }();
  return error;
}

// Returns Winsock's error code; 0 if the attempt succeeded. Nothing listens afterwards. Like gRPC,
// does not set SO_REUSEADDR, with which Windows lets one program take a port from another.
int TryBind(const addrinfo& address) {
  const SOCKET socket = ::socket(address.ai_family, SOCK_STREAM, IPPROTO_TCP);
  if (socket == INVALID_SOCKET) return ::WSAGetLastError();
  const DWORD off = 0;
  if (address.ai_family == AF_INET6) {
    ::setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, reinterpret_cast<const char*>(&off),
                 sizeof(off));
  }
  const bool bound = ::bind(socket, address.ai_addr, static_cast<int>(address.ai_addrlen)) == 0;
  const int error = bound ? 0 : ::WSAGetLastError();
  ::closesocket(socket);
  return error;
}

int TryAll(const addrinfo* list) {
  int absent = WSAEADDRNOTAVAIL;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    const int error = TryBind(*one);
    if (error == WSAEADDRNOTAVAIL || error == WSAEAFNOSUPPORT) continue;
    if (error != 0) return error;
    absent = 0;
  }
  return absent;
}

std::string Reason(int error, absl::string_view advice) {
  const absl::Status said = WindowsStatus(static_cast<DWORD>(error), "binding to it");
  return absl::StrCat(said.message(), advice);
}

PortAnswer Answer(int error) {
  switch (error) {
    case 0:
      return {};
    case WSAEADDRINUSE:
      return {PortState::kInUse,
              Reason(error,
                     "; another program has this port (`netstat -ano` shows which): end that, or "
                     "choose another port")};
    case WSAEADDRNOTAVAIL:
      return {PortState::kAbsent, Reason(error,
                                         "; this machine does not have the address (`ipconfig` "
                                         "lists those that it has)")};
    case WSAEACCES:
      return {PortState::kRefused,
              Reason(error,
                     "; another program has this port for itself, or Windows keeps it (`netsh "
                     "interface ipv4 show excludedportrange tcp`): choose another one")};
    default:
      return {PortState::kRefused, Reason(error, "")};
  }
}

}  // namespace

PortAnswer TryListening(const std::string& host, const std::string& port) {
  if (const int error = StartSockets(); error != 0)
    return {PortState::kRefused, Reason(error, "; Windows has no sockets to give")};
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) {
    const absl::Status said = WindowsStatus(static_cast<DWORD>(error),
                                            absl::StrCat("the host \"", host, "\" has no address"));
    return {PortState::kAbsent, std::string(said.message())};
  }
  const int error = TryAll(found);
  ::freeaddrinfo(found);
  return Answer(error);
}

}  // namespace sluice::os
