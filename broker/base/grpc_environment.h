// SPDX-License-Identifier: Apache-2.0
//
// GRPC_POLL_STRATEGY, by which gRPC chooses how it waits. gRPC aborts the process if the variable
// is empty, or names a way that this gRPC does not have: "epollex" and "legacy" went with 1.46.
// Whoever starts gRPC asks here first. Thread-safe, but for the last.
#pragma once

#include "absl/status/status.h"

namespace sluice {

inline constexpr char kGrpcPollStrategy[] = "GRPC_POLL_STRATEGY";

// OK if gRPC can wait with the environment of this process; else the message names the variable,
// its value and what to do.
absl::Status CheckGrpcEnvironment();

// For a program of Sluice's own, before it has threads: removes the variable if gRPC would abort
// because of it. Returns what CheckGrpcEnvironment said before.
absl::Status MendGrpcEnvironment();

}  // namespace sluice
