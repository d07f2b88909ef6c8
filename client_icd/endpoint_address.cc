// SPDX-License-Identifier: Apache-2.0
#include "client_icd/endpoint_address.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

constexpr char kSystemSocket[] = "/run/sluice/broker.sock";

EndpointAddress DefaultEndpoint() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && runtime[0] == '/') {
    const std::string path = absl::StrCat(runtime, "/sluice/broker.sock");
    if (::access(path.c_str(), F_OK) == 0) return {EndpointAddress::Kind::kLocal, path};
  }
  return {EndpointAddress::Kind::kLocal, kSystemSocket};
}

bool EndsInPort(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size() ||
      text.size() - colon > 6)
    return false;
  return text.substr(colon + 1).find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

absl::StatusOr<std::vector<EndpointAddress>> ParseEndpoints(std::string_view text) {
  std::vector<EndpointAddress> addresses;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    std::string_view entry = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    while (entry.starts_with(' ')) entry.remove_prefix(1);
    while (entry.ends_with(' ')) entry.remove_suffix(1);
    if (entry.empty()) continue;
    if (entry.starts_with("unix:") && entry.size() > 5) {
      addresses.push_back({EndpointAddress::Kind::kLocal, std::string(entry.substr(5))});
    } else if (EndsInPort(entry.starts_with("dns:///") ? entry.substr(7) : entry)) {
      addresses.push_back({EndpointAddress::Kind::kRemote, std::string(entry)});
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("SLUICE_ENDPOINT: '", std::string(entry),
                       "' is none of unix:PATH, HOST:PORT, dns:///NAME:PORT"));
    }
  }
  if (addresses.empty()) addresses.push_back(DefaultEndpoint());
  return addresses;
}

}  // namespace sluice
