// SPDX-License-Identifier: Apache-2.0
//
// Checks the names of the daemon's own sockets: each can be one, no two are the same, and none that
// gives more than a client's rights is in the clients' reach. CheckConfig asks, and OldPlaces and
// MovedDefaults of config.h are beside it. Plain functions; the names are the operator's.
#pragma once

#include <string>
#include <vector>

namespace sluice::broker {

struct Config;

// A message for each fault, with the key's place or the flag. After ApplyDefaults.
std::vector<std::string> SocketProblems(const Config& config);

}  // namespace sluice::broker
