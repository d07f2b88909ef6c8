// SPDX-License-Identifier: Apache-2.0
// Finds out if one of our plugins (libsluice_remote.so, libsluice.so) cannot be used in this
// process: beside another gRPC, or in a second namespace of the linker. Thread-safe. No other is in
// the way where the plugins hide a gRPC of their own (the portable client, deploy/portable):
// nothing of it can meet another.
#pragma once

#include "absl/status/status.h"

namespace sluice::client {

// kFailedPrecondition names the file of the other gRPC, or the call that made the namespace.
absl::Status CheckNoForeignGrpc();

// True if the process has a gRPC already, of whatever kind: its settings are not ours to
// change.
bool HasGrpc();

}  // namespace sluice::client
