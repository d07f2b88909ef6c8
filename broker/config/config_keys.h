// SPDX-License-Identifier: Apache-2.0
//
// What the system has to say of the configuration: keys that only some have a use for, and files
// that should be the daemon's alone. Thread-safe.
#pragma once

#include <string>

namespace sluice::broker {

// Why `key` has no other value than its default on this system, in words that follow "allowed is";
// "" if it may have another.
std::string FixedKeyReason(const std::string& key);

// Whether two names of environment variables are one's. Windows' have no case.
bool IsSameVariable(const std::string& a, const std::string& b);

// Who else reads a file, and what ends that, in words that follow its path; "" if nobody does who
// has no right of their own to it, or the system does not say.
std::string OtherReaders(const std::string& path);
// Who else writes it, likewise.
std::string OtherWriters(const std::string& path);

}  // namespace sluice::broker
