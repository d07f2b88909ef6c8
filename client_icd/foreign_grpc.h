// SPDX-License-Identifier: Apache-2.0
// Whether the process has a gRPC that the one of our plugins (libsluice_remote.so, libsluice.so)
// cannot be beside. Thread-safe. None has where the plugins hide a gRPC of their own (the portable
// client, deploy/portable): nothing of it can meet another.
#pragma once

#include "absl/status/status.h"

namespace sluice {

// kFailedPrecondition names the file of the other gRPC.
absl::Status CheckNoForeignGrpc();

// Whether the process has a gRPC already, of whatever kind: what is set in it is not ours to
// change.
bool HasGrpc();

}  // namespace sluice
