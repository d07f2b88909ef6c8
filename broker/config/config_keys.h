// SPDX-License-Identifier: Apache-2.0
//
// The configuration's rules that depend on the system: keys that only some systems have a use for,
// and files that should be the daemon's alone. Thread-safe.
#pragma once

#include <string>

namespace sluice::broker {

// Why `key` must keep its default on this system, in words that follow "allowed is"; "" if it may
// have another value.
std::string FixedKeyReason(const std::string& key);

// True if two names mean the same environment variable. Windows' have no case.
bool IsSameVariable(const std::string& a, const std::string& b);

// Says who else can read a file, and what ends that, in words that follow its path. "" if nobody
// can who has no right of their own to it, or the system does not say.
std::string OtherReaders(const std::string& path);
// The same of others who can write it.
std::string OtherWriters(const std::string& path);

}  // namespace sluice::broker
