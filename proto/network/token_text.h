// SPDX-License-Identifier: Apache-2.0
//
// The format of a bearer token's file: text that any editor has written, one token a line; blank
// lines and lines that begin with '#' are skipped. A line "@lab TOKEN" names the tenant whose token
// it is. The one rule for the gateway, which reads the tokens that it accepts, and the client,
// which reads the one that it shows: one file serves both. Thread-safe.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace sluice::wire {

// Headers together may have 8 KiB (gRPC's default).
inline constexpr size_t kMaxTokenBytes = 4096;

// The file's first tokens, `most` of them; what stands behind those is not looked at. An error
// names the line: there is no token, or one that no request can carry, or that could be guessed.
// `tenants`: of each token, "" where none is named.
absl::StatusOr<std::vector<std::string>> ParseTokens(
    std::string_view file, size_t most = std::numeric_limits<size_t>::max(),
    std::vector<std::string>* tenants = nullptr);

// True if it can be a tenant's: 1 to 32 of a to z, 0 to 9 and "-".
bool IsTenantName(std::string_view name);

}  // namespace sluice::wire
