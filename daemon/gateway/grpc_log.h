// SPDX-License-Identifier: Apache-2.0
//
// gRPC's own complaints, as lines of our log: failed handshakes above all. Anybody who can reach
// the port can cause them, so only a few a second are written. Thread-safe.
#pragma once

namespace sluice::gateway {

// Before gRPC is first used.
void TakeOverGrpcLog();

}  // namespace sluice::gateway
