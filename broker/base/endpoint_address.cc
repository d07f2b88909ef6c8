// SPDX-License-Identifier: Apache-2.0
#include "broker/base/endpoint_address.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "broker/base/host_port.h"
#include "broker/os/local_endpoint.h"
#include "broker/os/local_socket.h"

namespace sluice {

bool EndpointAddress::operator==(const EndpointAddress& other) const {
  return kind == other.kind && (kind == Kind::kLocal ? os::IsSameLocalName(target, other.target)
                                                     : target == other.target);
}

namespace {

// Text from a browser's address bar has more than host and port.
std::string UrlHint(std::string_view entry) {
  const size_t scheme = entry.find("://");
  if (scheme == std::string_view::npos) return "";
  const std::string_view rest = entry.substr(scheme + 3);
  const std::string_view host = rest.substr(0, rest.find('/'));
  return IsHostAndPort(host) ? absl::StrCat("; write ", std::string(host)) : "";
}

// For a host with an impossible port.
std::string PortHint(std::string_view entry) {
  if (entry.starts_with("dns:///")) entry.remove_prefix(7);
  const size_t colon = entry.rfind(':');
  const bool of_port = colon != std::string_view::npos &&
                       entry.find('/', colon) == std::string_view::npos &&
                       IsHostAndPort(absl::StrCat(std::string(entry.substr(0, colon)), ":1"));
  return of_port ? "; a port is a number from 1 to 65535" : "";
}

absl::StatusOr<EndpointAddress> ParseEntry(std::string_view entry, std::string_view source) {
  std::string reason = absl::StrCat(UrlHint(entry), PortHint(entry));
  if (const std::string_view scheme = os::kLocalScheme; entry.starts_with(scheme)) {
    absl::StatusOr<std::string> local = os::ParseLocalName(entry.substr(scheme.size()));
    if (local.ok())
      return EndpointAddress{EndpointAddress::Kind::kLocal, *std::move(local), std::string(entry)};
    reason =
        absl::StrCat(": what follows ", os::kLocalScheme, " must be ", local.status().message());
  } else if (IsHostAndPort(entry.starts_with("dns:///") ? entry.substr(7) : entry)) {
    return EndpointAddress{EndpointAddress::Kind::kRemote, std::string(entry), std::string(entry)};
  }
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(source), ": '", std::string(entry), "' is none of ",
                   os::LocalEndpointForm(), ", HOST:PORT, [IPV6]:PORT, dns:///NAME:PORT", reason));
}

}  // namespace

absl::StatusOr<std::vector<EndpointAddress>> ParseEndpoints(std::string_view text,
                                                            std::vector<absl::Status>* refused,
                                                            std::string_view source) {
  std::vector<EndpointAddress> addresses;
  if (text.empty()) {
    std::string name = os::DefaultClientName();
    std::string whole = absl::StrCat(os::kLocalScheme, name);
    addresses.push_back({EndpointAddress::Kind::kLocal, std::move(name), std::move(whole)});
    return addresses;
  }
  absl::Status first_refused;
  bool any = false;
  const auto refuse = [&](absl::Status status) {
    if (refused != nullptr) refused->push_back(status);
    first_refused.Update(std::move(status));
  };
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const absl::string_view stripped =
        absl::StripAsciiWhitespace(absl::string_view(text.data(), comma));
    const std::string_view entry(stripped.data(), stripped.size());
    text.remove_prefix(std::min(comma + 1, text.size()));
    if (entry.empty()) continue;
    any = true;
    absl::StatusOr<EndpointAddress> address = ParseEntry(entry, source);
    if (!address.ok()) {
      refuse(address.status());
    } else if (std::find(addresses.begin(), addresses.end(), *address) == addresses.end()) {
      addresses.push_back(*std::move(address));
    }
  }
  if (!any) {
    refuse(absl::InvalidArgumentError(absl::StrCat(std::string(source), " names no endpoint")));
  }
  if (refused == nullptr && !first_refused.ok()) return first_refused;
  return addresses;
}

}  // namespace sluice
