// SPDX-License-Identifier: Apache-2.0
//
// Changes of the configuration that a reload cannot give effect to. Thread-safe.
#pragma once

#include <string>
#include <vector>

namespace sluice::broker {

struct Config;

// The keys by which two configurations differ and that take effect only when the daemon is started
// again, each with its place in the file of `fresh`. Those are of [broker], [control_groups] and
// [[network]].
std::vector<std::string> KeysThatAwaitAStart(const Config& running, const Config& fresh);

}  // namespace sluice::broker
