// SPDX-License-Identifier: Apache-2.0
//
// Whether certificate, key and authorities are what they should be, before anybody connects: gRPC
// says only that it cannot listen. Files are the operator's. Any thread.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace sluice {

// PEM texts. The error says which of them is wrong, and how. `client_ca` may be empty.
absl::Status CheckTlsFiles(const std::string& certificate, const std::string& key,
                           const std::string& client_ca);

}  // namespace sluice
