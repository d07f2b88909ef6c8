// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/endpoint.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "broker/os/local_endpoint.h"
#include "broker/os/local_socket.h"
#include "broker/os/process.h"
#include "broker/os/this_process.h"

// Relative to the directory of the executable; set by CMake from the install directories.
#ifndef SLUICE_ICD_FROM_BIN
#define SLUICE_ICD_FROM_BIN "../lib/libsluice_icd.so"
#endif

namespace sluice {
namespace {

std::string DefaultEndpoint() { return absl::StrCat(kLocalScheme, DefaultClientName()); }

absl::StatusOr<std::string> FirstExisting(const std::vector<std::string>& candidates,
                                          const std::string& what) {
  for (const std::string& candidate : candidates) {
    std::error_code error;
    const std::filesystem::path path = std::filesystem::canonical(candidate, error);
    if (!error) return path.string();
  }
  return absl::NotFoundError(absl::StrCat(what, " is in none of: ", absl::StrJoin(candidates, ", "),
                                          "; build or install all of Sluice"));
}

absl::StatusOr<std::string> OwnDirectory() {
  absl::StatusOr<std::string> own = OwnExecutablePath();
  if (!own.ok()) return own.status();
  return own->substr(0, own->find_last_of("/\\"));
}

}  // namespace

absl::StatusOr<Endpoint> ParseEndpoint(const std::string& text) {
  const absl::Status refused = absl::InvalidArgumentError(
      absl::StrCat("endpoint \"", text, "\" is none of ", LocalEndpointForm(),
                   ", HOST:PORT, [IPV6]:PORT, dns:///NAME:PORT"));
  Endpoint endpoint;
  endpoint.text = text;
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, kLocalScheme)) {
    const absl::StatusOr<std::string> name = ParseLocalName({rest.data(), rest.size()});
    if (!name.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(refused.message(), ": what follows ",
                                                     kLocalScheme, " must be ",
                                                     name.status().message()));
    }
    endpoint.local = true;
    endpoint.path = *name;
    return endpoint;
  }
  absl::ConsumePrefix(&rest, "dns:///");
  // Another system's, and no host: "unix:/tmp/x", "pipe:x".
  if (absl::StartsWith(rest, "unix:") || absl::StartsWith(rest, "pipe:")) return refused;
  const size_t colon = rest.rfind(':');
  if (colon == absl::string_view::npos || colon == 0 || colon + 1 == rest.size()) return refused;
  endpoint.port = std::string(rest.substr(colon + 1));
  int port = 0;
  if (!absl::SimpleAtoi(endpoint.port, &port) || port < 1 || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("endpoint \"", text, "\" has no port from 1 to 65535"));
  }
  absl::string_view host = rest.substr(0, colon);
  if (absl::ConsumePrefix(&host, "[") && !absl::ConsumeSuffix(&host, "]")) return refused;
  endpoint.host = std::string(host);
  return endpoint;
}

absl::StatusOr<std::vector<Endpoint>> ResolveEndpoints(const std::string& flag) {
  std::string text = flag.empty() ? EnvironmentVariable("SLUICE_ENDPOINT").value_or("") : flag;
  if (text.empty()) text = DefaultEndpoint();
  std::vector<Endpoint> endpoints;
  for (const absl::string_view part : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    absl::StatusOr<Endpoint> endpoint =
        ParseEndpoint(std::string(absl::StripAsciiWhitespace(part)));
    if (!endpoint.ok()) return endpoint.status();
    const bool again = std::any_of(endpoints.begin(), endpoints.end(),
                                   [&](const Endpoint& one) { return one.text == endpoint->text; });
    if (!again) endpoints.push_back(*std::move(endpoint));
  }
  if (endpoints.empty())
    return absl::InvalidArgumentError(
        absl::StrCat(flag.empty() ? "SLUICE_ENDPOINT" : "--endpoint", " names no endpoint"));
  return endpoints;
}

absl::StatusOr<std::string> ResolveAdminSocket(const std::string& flag,
                                               const std::string& endpoint_flag) {
  if (!flag.empty()) return flag;
  const absl::StatusOr<std::vector<Endpoint>> endpoints = ResolveEndpoints(endpoint_flag);
  if (!endpoints.ok()) return endpoints.status();
  std::vector<const Endpoint*> here;
  for (const Endpoint& endpoint : *endpoints) {
    if (endpoint.local) here.push_back(&endpoint);
  }
  if (here.empty()) {
    return absl::InvalidArgumentError(
        "a daemon on another machine is administered there; give --admin-socket for one here");
  }
  if (here.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("one daemon at a time is administered, and ", here.size(),
                     " are named; choose one with --endpoint, ", here[0]->text, " say"));
  }
  return AdminNameBeside(here[0]->path);
}

absl::StatusOr<std::string> FindIcdLibrary() {
  const absl::StatusOr<std::string> folder = OwnDirectory();
  if (!folder.ok()) return folder.status();
  return FirstExisting({*folder + "/" SLUICE_ICD_FROM_BIN, *folder + "/../lib/libsluice_icd.so"},
                       "libsluice_icd.so");
}

absl::StatusOr<std::string> FindDaemon() {
  const absl::StatusOr<std::string> folder = OwnDirectory();
  if (!folder.ok()) return folder.status();
  return FirstExisting({*folder + "/sluiced"}, "sluiced");
}

}  // namespace sluice
