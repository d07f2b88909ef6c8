// SPDX-License-Identifier: Apache-2.0
#include "client_icd/endpoint_address.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "broker/base/host_port.h"
#include "broker/os/local_endpoint.h"
#include "broker/os/local_socket.h"

namespace sluice {

absl::StatusOr<std::vector<EndpointAddress>> ParseEndpoints(std::string_view text,
                                                            std::vector<absl::Status>* refused) {
  std::vector<EndpointAddress> addresses;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    std::string_view entry = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    while (entry.starts_with(' ')) entry.remove_prefix(1);
    while (entry.ends_with(' ')) entry.remove_suffix(1);
    if (entry.empty()) continue;
    const std::string_view scheme = kLocalScheme;
    std::optional<std::string> local;
    if (entry.starts_with(scheme)) local = ParseLocalName(entry.substr(scheme.size()));
    EndpointAddress address;
    if (local.has_value()) {
      address = {EndpointAddress::Kind::kLocal, *std::move(local)};
    } else if (IsHostAndPort(entry.starts_with("dns:///") ? entry.substr(7) : entry)) {
      address = {EndpointAddress::Kind::kRemote, std::string(entry)};
    } else {
      absl::Status status = absl::InvalidArgumentError(
          absl::StrCat("SLUICE_ENDPOINT: '", std::string(entry), "' is none of ",
                       LocalEndpointForm(), ", HOST:PORT, [IPV6]:PORT, dns:///NAME:PORT"));
      if (refused == nullptr) return status;
      refused->push_back(std::move(status));
      continue;
    }
    if (std::find(addresses.begin(), addresses.end(), address) == addresses.end())
      addresses.push_back(std::move(address));
  }
  if (addresses.empty() && (refused == nullptr || refused->empty())) {
    addresses.push_back({EndpointAddress::Kind::kLocal, DefaultClientName()});
  }
  return addresses;
}

}  // namespace sluice
