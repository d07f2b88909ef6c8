// SPDX-License-Identifier: Apache-2.0
//
// Keys of the configuration that only some systems have a use for. Thread-safe.
#pragma once

#include <string>

namespace sluice {

// Why `key` has no other value than its default on this system, in words that follow "allowed is";
// "" if it may have another.
std::string FixedKeyReason(const std::string& key);

}  // namespace sluice
