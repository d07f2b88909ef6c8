// SPDX-License-Identifier: Apache-2.0
#include "broker/gateway/listen_check.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "broker/os/scoped_handle.h"
#include "proto/status_macros.h"

namespace sluice {
namespace {

constexpr absl::Duration kRetryInterval = absl::Milliseconds(50);

struct HostAndPort {
  std::string host;  // Without an IPv6 address's brackets.
  std::string port;
};

HostAndPort Split(const std::string& address) {
  const size_t colon = address.rfind(':');
  HostAndPort parts{address.substr(0, colon), address.substr(colon + 1)};
  if (parts.host.starts_with("[") && parts.host.ends_with("]"))
    parts.host = parts.host.substr(1, parts.host.size() - 2);
  return parts;
}

bool IsWildcard(const std::string& host) { return host == "0.0.0.0" || host == "::"; }

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

absl::StatusOr<AddressList> Resolve(const std::string& host, const std::string& port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (error == 0) return AddressList(found, &::freeaddrinfo);
  return absl::NotFoundError(
      absl::StrCat("the host \"", host, "\" has no address: ", ::gai_strerror(error)));
}

// errno of the attempt; 0 if it went well. Nothing listens afterwards.
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

// A host may have several addresses, of which one that this machine does not have is no harm.
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

absl::StatusOr<int> TryHost(const std::string& host, const std::string& port) {
  // As gRPC: whoever asks for all of one family gets the other as well, where there is one.
  if (IsWildcard(host)) {
    ASSIGN_OR_RETURN(const AddressList both, Resolve("::", port));
    const int error = TryAll(both.get());
    if (error != EADDRNOTAVAIL) return error;
    ASSIGN_OR_RETURN(const AddressList old, Resolve("0.0.0.0", port));
    return TryAll(old.get());
  }
  ASSIGN_OR_RETURN(const AddressList list, Resolve(host, port));
  return TryAll(list.get());
}

const char* Advice(int error) {
  switch (error) {
    case EADDRINUSE:
      return "; another program has this port (`ss -ltnp` shows which): end that, or choose "
             "another "
             "port";
    case EADDRNOTAVAIL:
      return "; this machine does not have the address (`ip address` lists those that it has)";
    case EACCES:
      return "; ports below 1024 are kept from the user that the gateway runs as: choose another "
             "one";
    default:
      return "";
  }
}

absl::Status CheckAddress(const std::string& address, ListenCheck check, absl::Time deadline) {
  const HostAndPort parts = Split(address);
  const std::string port = check == ListenCheck::kPorts ? parts.port : "0";
  absl::StatusOr<int> error = TryHost(parts.host, port);
  while (error.ok() && *error == EADDRINUSE && absl::Now() < deadline) {
    absl::SleepFor(kRetryInterval);  // Nothing tells when a port becomes free.
    error = TryHost(parts.host, port);
  }
  if (error.ok() && *error == 0) return absl::OkStatus();
  const bool absent = !error.ok() || *error == EADDRNOTAVAIL;
  return absl::Status(
      absent ? absl::StatusCode::kUnavailable : absl::StatusCode::kFailedPrecondition,
      absl::StrCat("cannot listen on ", address, ": ",
                   error.ok() ? absl::StrCat(std::strerror(*error), Advice(*error))
                              : error.status().message()));
}

}  // namespace

std::vector<std::string> DistinctAddresses(const std::vector<std::string>& listen) {
  std::vector<std::string> distinct;
  for (const std::string& address : listen) {
    const HostAndPort parts = Split(address);
    const bool served = std::any_of(distinct.begin(), distinct.end(), [&](const auto& earlier) {
      const HostAndPort other = Split(earlier);
      return IsWildcard(parts.host) && IsWildcard(other.host) && parts.port == other.port;
    });
    if (!served) distinct.push_back(address);
  }
  return distinct;
}

absl::Status CheckListening(const std::vector<std::string>& listen, ListenCheck check,
                            absl::Duration patience) {
  const absl::Time deadline = absl::Now() + patience;
  absl::Status absent;
  for (const std::string& address : listen) {
    const absl::Status checked = CheckAddress(address, check, deadline);
    if (!checked.ok() && !absl::IsUnavailable(checked)) return checked;
    absent.Update(checked);
  }
  return absent;
}

}  // namespace sluice
