// SPDX-License-Identifier: Apache-2.0
// What the broker's own helpers, gateways and the allocator, see of its environment. (A worker's is
// worker_launcher.h's.)
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

namespace sluice::broker {

// "NAME=value" of what every program of ours needs, and of `more`, as far as they are set.
std::vector<std::string> HelperEnvironment(std::initializer_list<const char*> more);

}  // namespace sluice::broker
