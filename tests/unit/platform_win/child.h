// SPDX-License-Identifier: Apache-2.0
//
// The other process of a test: this program again, with "--child=PART" as its first argument.
#pragma once

#include <string>

#include "broker/os/process.h"

namespace sluice::os {

// How it is started; the environment is what a child on Windows cannot do without.
SpawnOptions ChildOptions(const std::string& part);

// Its task. Its exit code is its answer: 0 if all was as the part wants it.
int RunChildPart(const std::string& part, int argc, char** argv);

// The part "tell-output", of child_output_test.cc: logs what a child of this part writes.
int TellOutputOf(const std::string& part);

// So many lines has the part "flood".
inline constexpr int kFloodLines = 100'000;

// A pipe's name that no other test has.
std::string FreshPipeName();

}  // namespace sluice::os
