// SPDX-License-Identifier: Apache-2.0
//
// Where the daemon is, as an application would look for it: SLUICE_ENDPOINT, else the default
// socket. Also what is derived from it: the operators' sockets, the ICD's place beside this
// executable. Plain functions; single thread.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "broker/base/endpoint_address.h"

namespace sluice::ctl {

// The endpoints that `flag` names if it is not empty, else SLUICE_ENDPOINT, else the default. With
// `refused`, what is no endpoint is told there and left out, as the driver does.
absl::StatusOr<std::vector<EndpointAddress>> ResolveEndpoints(
    const std::string& flag, std::vector<absl::Status>* refused = nullptr);

// The operators' sockets of the one local endpoint, in the order in which to try them: its admin
// socket; the monitor socket, for callers that only look; the old place of the admin socket. If
// `flag` names one, that alone.
absl::StatusOr<std::vector<std::string>> ResolveAdminSockets(const std::string& flag,
                                                             const std::string& endpoint_flag,
                                                             bool only_looks);

// The path of libsluice_icd.so that belongs to this sluicectl: build tree or installation.
absl::StatusOr<std::string> FindIcdLibrary();

// The path of sluiced that belongs to this sluicectl.
absl::StatusOr<std::string> FindDaemon();

}  // namespace sluice::ctl
