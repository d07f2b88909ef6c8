// SPDX-License-Identifier: Apache-2.0
//
// gRPC's own complaints, as lines of our log: failed handshakes above all. Whoever can reach the
// port can cause them, so that only a few a second are written. Thread-safe.
#pragma once

namespace sluice::gateway {

// Before gRPC is first used.
void TakeOverGrpcLog();

}  // namespace sluice::gateway
