// SPDX-License-Identifier: Apache-2.0
//
// The ways that gRPC's bytes of resource clients take, one for each connection, as ResourceHub sees
// them: what its client gets, and what tells that the client is gone. Without gRPC's headers;
// listener.h has the side that the server sees.
//
// Owner: the ResourceServer. Loop thread only.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "broker/os/scoped_handle.h"

namespace sluice::broker {

class ResourceStreams {
 public:
  struct Ends {
    os::UniqueFd ours;    // To watch for its hang-up, and to hang up.
    os::UniqueFd client;  // As ResourcesOpened describes it; goes to the client.
  };

  virtual ~ResourceStreams() = default;

  // `connection` is not 0 and no other's, ever.
  virtual absl::StatusOr<Ends> Open(uint64_t connection) = 0;
  // Calls that come this way are nobody's from now on.
  virtual void Close(uint64_t connection) = 0;
};

}  // namespace sluice::broker
