// SPDX-License-Identifier: Apache-2.0
//
// Bytes that nobody can guess, from the system. Thread-safe.
#pragma once

#include <cstddef>

#include "absl/status/status.h"

namespace sluice::os {

absl::Status FillRandom(void* out, size_t size);

}  // namespace sluice::os
