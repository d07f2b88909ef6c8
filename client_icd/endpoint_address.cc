// SPDX-License-Identifier: Apache-2.0
#include "client_icd/endpoint_address.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/base/host_port.h"
#include "broker/os/local_endpoint.h"
#include "broker/os/local_socket.h"

namespace sluice {

bool EndpointAddress::operator==(const EndpointAddress& other) const {
  return kind == other.kind &&
         (kind == Kind::kLocal ? IsSameLocalName(target, other.target) : target == other.target);
}

namespace {

absl::StatusOr<EndpointAddress> ParseEntry(std::string_view entry) {
  std::string reason;
  if (const std::string_view scheme = kLocalScheme; entry.starts_with(scheme)) {
    absl::StatusOr<std::string> local = ParseLocalName(entry.substr(scheme.size()));
    if (local.ok()) return EndpointAddress{EndpointAddress::Kind::kLocal, *std::move(local)};
    reason = absl::StrCat(": what follows ", kLocalScheme, " must be ", local.status().message());
  } else if (IsHostAndPort(entry.starts_with("dns:///") ? entry.substr(7) : entry)) {
    return EndpointAddress{EndpointAddress::Kind::kRemote, std::string(entry)};
  }
  return absl::InvalidArgumentError(
      absl::StrCat("SLUICE_ENDPOINT: '", std::string(entry), "' is none of ", LocalEndpointForm(),
                   ", HOST:PORT, [IPV6]:PORT, dns:///NAME:PORT", reason));
}

}  // namespace

absl::StatusOr<std::vector<EndpointAddress>> ParseEndpoints(std::string_view text,
                                                            std::vector<absl::Status>* refused) {
  std::vector<EndpointAddress> addresses;
  if (text.empty()) {
    addresses.push_back({EndpointAddress::Kind::kLocal, DefaultClientName()});
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
    std::string_view entry = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    while (entry.starts_with(' ')) entry.remove_prefix(1);
    while (entry.ends_with(' ')) entry.remove_suffix(1);
    if (entry.empty()) continue;
    any = true;
    absl::StatusOr<EndpointAddress> address = ParseEntry(entry);
    if (!address.ok()) {
      refuse(address.status());
    } else if (std::find(addresses.begin(), addresses.end(), *address) == addresses.end()) {
      addresses.push_back(*std::move(address));
    }
  }
  if (!any) refuse(absl::InvalidArgumentError("SLUICE_ENDPOINT names no endpoint"));
  if (refused == nullptr && !first_refused.ok()) return first_refused;
  return addresses;
}

}  // namespace sluice
