// SPDX-License-Identifier: Apache-2.0
#include "platform_linux/gateway/listeners.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "platform_linux/errno_status.h"

namespace sluice::gateway {
namespace {

absl::StatusOr<os::UniqueFd> ListenAt(const addrinfo& address, bool both_families) {
  os::UniqueFd socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return os::ErrnoStatus(errno, "socket");
  const int on = 1;
  const int only_own = both_families ? 0 : 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address.ai_family == AF_INET6)
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only_own, sizeof(only_own));
  if (::bind(socket.get(), address.ai_addr, address.ai_addrlen) != 0)
    return os::ErrnoStatus(errno, "bind");
  if (::listen(socket.get(), SOMAXCONN) != 0) return os::ErrnoStatus(errno, "listen");
  return socket;
}

absl::StatusOr<std::vector<os::UniqueFd>> ListenOnHost(const std::string& host,
                                                       const std::string& port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0)
    return absl::UnavailableError(::gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(found, &::freeaddrinfo);
  std::vector<os::UniqueFd> sockets;
  absl::Status last = absl::UnavailableError("no address");
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    absl::StatusOr<os::UniqueFd> socket = ListenAt(*one, host == "::");
    if (socket.ok()) {
      sockets.push_back(*std::move(socket));
    } else {
      last = socket.status();
    }
  }
  if (sockets.empty()) return last;
  return sockets;
}

}  // namespace

absl::StatusOr<std::vector<os::UniqueFd>> ListenOn(const std::string& address) {
  const size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  const std::string port = address.substr(colon + 1);
  if (host.starts_with("[") && host.ends_with("]")) host = host.substr(1, host.size() - 2);
  if (host != "0.0.0.0" && host != "::") return ListenOnHost(host, port);
  absl::StatusOr<std::vector<os::UniqueFd>> both = ListenOnHost("::", port);
  return both.ok() ? std::move(both) : ListenOnHost("0.0.0.0", port);
}

int PortOf(int listener) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET
                   ? reinterpret_cast<const sockaddr_in&>(address).sin_port
                   : reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
}

}  // namespace sluice::gateway
