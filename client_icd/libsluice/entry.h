// SPDX-License-Identifier: Apache-2.0
//
// Shared by the entry points: a status for the caller, and its words for the calling thread.
// Thread-safe.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "client_icd/libsluice/sluice/sluice.h"

namespace sluice::client {

// Both set what sluice_error_text says from now on, on failure, and return the status.
sluice_status Fail(sluice_status status, const std::string& why);
sluice_status Told(const absl::Status& status);
sluice_status NullArgument();

}  // namespace sluice::client
