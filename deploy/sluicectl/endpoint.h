// SPDX-License-Identifier: Apache-2.0
//
// Where the daemon is, as an application would look for it: SLUICE_ENDPOINT, else the default
// socket. Also what is derived from it: the admin socket, the ICD's place beside this executable.
// Plain functions; single thread.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace sluice {

struct Endpoint {
  std::string text;  // As written.
  bool local = false;
  std::string path;  // Of the socket, if local.
  std::string host;  // Else these two.
  std::string port;
};

// kInvalidArgument says what is allowed.
absl::StatusOr<Endpoint> ParseEndpoint(const std::string& text);

// `flag` if not empty, else SLUICE_ENDPOINT, else the default; several are separated by commas.
absl::StatusOr<std::vector<Endpoint>> ResolveEndpoints(const std::string& flag);

// "admin.sock" beside the first local endpoint's socket, unless `flag` names one.
absl::StatusOr<std::string> ResolveAdminSocket(const std::string& flag,
                                               const std::string& endpoint_flag);

// The path of libsluice_icd.so that belongs to this sluicectl: build tree or installation.
absl::StatusOr<std::string> FindIcdLibrary();

// The path of sluiced that belongs to this sluicectl.
absl::StatusOr<std::string> FindDaemon();

}  // namespace sluice
