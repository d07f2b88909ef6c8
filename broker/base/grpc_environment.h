// SPDX-License-Identifier: Apache-2.0
//
// GRPC_POLL_STRATEGY, by which gRPC chooses how it waits: it aborts the process if the variable
// names no way that it has, as "epollex" and "legacy" were ones of gRPC before 1.46, or if it is
// empty. Whoever starts gRPC asks here first. Thread-safe, but for the last.
#pragma once

#include "absl/status/status.h"

namespace sluice {

inline constexpr char kGrpcPollStrategy[] = "GRPC_POLL_STRATEGY";

// OK if gRPC can wait with the environment of this process; else the message names the variable,
// its value and what to do.
absl::Status CheckGrpcEnvironment();

// For a program of Sluice's own, before it has threads: with a value that gRPC would abort for it
// goes on as without the variable. Returns what CheckGrpcEnvironment said before.
absl::Status MendGrpcEnvironment();

}  // namespace sluice
