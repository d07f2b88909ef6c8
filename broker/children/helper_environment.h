// SPDX-License-Identifier: Apache-2.0
// The environment of the broker's own helpers, gateways and the allocator. (A worker's is in
// worker_launcher.h.)
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

namespace sluice::broker {

// "NAME=value" for the variables that every program of ours needs, and for `more`, as far as they
// are set.
std::vector<std::string> HelperEnvironment(std::initializer_list<const char*> more);

}  // namespace sluice::broker
