// SPDX-License-Identifier: Apache-2.0
#include "broker/os/listen_port.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "broker/os/scoped_handle.h"

namespace sluice::os {
namespace {

// Returns the errno of the attempt; 0 if it succeeded. Nothing listens afterwards.
int TryBind(const addrinfo& address) {
  const UniqueFd socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return errno;
  const int on = 1;
  const int off = 0;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address.ai_family == AF_INET6)
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  return ::bind(socket.get(), address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
}

int TryAll(const addrinfo* list) {
  int absent = EADDRNOTAVAIL;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    const int error = TryBind(*one);
    if (error == EADDRNOTAVAIL || error == EAFNOSUPPORT) continue;
    if (error != 0) return error;
    absent = 0;
  }
  return absent;
}

PortAnswer Answer(int error) {
  const std::string reason = std::strerror(error);
  switch (error) {
    case 0:
      return {};
    case EADDRINUSE:
      return {PortState::kInUse,
              reason +
                  "; another program has this port (`ss -ltnp` shows which): end that, or choose "
                  "another port"};
    case EADDRNOTAVAIL:
      return {PortState::kAbsent, reason +
                                      "; this machine does not have the address (`ip address` "
                                      "lists those that it has)"};
    case EACCES:
      return {PortState::kRefused,
              reason +
                  "; ports below 1024 are kept from the user that the gateway runs as: choose "
                  "another one"};
    default:
      return {PortState::kRefused, reason};
  }
}

}  // namespace

PortAnswer TryListening(const std::string& host, const std::string& port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) {
    return {PortState::kAbsent,
            absl::StrCat("the host \"", host, "\" has no address: ", ::gai_strerror(error))};
  }
  const int error = TryAll(found);
  ::freeaddrinfo(found);
  return Answer(error);
}

}  // namespace sluice::os
