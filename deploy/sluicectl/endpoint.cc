// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/endpoint.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "broker/base/daemon_places.h"
#include "broker/os/local_socket.h"
#include "broker/os/process.h"
#include "broker/os/this_process.h"

// Relative to the directory of the executable; set by CMake from the install directories.
#ifndef SLUICE_ICD_FROM_BIN
#define SLUICE_ICD_FROM_BIN "../lib/libsluice_icd.so"
#endif

namespace sluice::ctl {
namespace {

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
  absl::StatusOr<std::string> own = os::OwnExecutablePath();
  if (!own.ok()) return own.status();
  return own->substr(0, own->find_last_of("/\\"));
}

}  // namespace

absl::StatusOr<std::vector<EndpointAddress>> ResolveEndpoints(const std::string& flag,
                                                              std::vector<absl::Status>* refused) {
  if (!flag.empty()) return ParseEndpoints(flag, refused, "--endpoint");
  return ParseEndpoints(os::EnvironmentVariable("SLUICE_ENDPOINT").value_or(""), refused);
}

absl::StatusOr<std::vector<std::string>> ResolveAdminSockets(const std::string& flag,
                                                             const std::string& endpoint_flag,
                                                             bool only_looks) {
  if (!flag.empty()) return std::vector<std::string>{flag};
  const absl::StatusOr<std::vector<EndpointAddress>> endpoints = ResolveEndpoints(endpoint_flag);
  if (!endpoints.ok()) return endpoints.status();
  std::vector<const EndpointAddress*> here;
  for (const EndpointAddress& endpoint : *endpoints) {
    if (endpoint.local()) here.push_back(&endpoint);
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
  // The path of old leads to the same daemon, whose other sockets are named after today's.
  const std::string default_name = DefaultLocalName();
  const std::string& given = here[0]->target;
  const std::string name =
      OldPlacesServed() && given == OldClientNameOf(default_name) ? default_name : given;
  std::vector<std::string> sockets = {AdminNameOf(name)};
  if (only_looks) sockets.push_back(MonitorNameOf(name));
  const std::string old = OldPlacesServed() ? OldAdminNameOf(name) : "";
  if (!old.empty()) sockets.push_back(old);
  return sockets;
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

}  // namespace sluice::ctl
