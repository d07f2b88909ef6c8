// SPDX-License-Identifier: Apache-2.0
// Makes encoded Commands at random from what protoc says of them, so that a new command is fuzzed
// without a word about it here. (The ICD and the worker use protobuf's lite runtime, which has no
// reflection; a descriptor set, read here by a few lines, has all that is needed.)
#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace sluice::fuzz {

// Ids in it come from a small pool beginning at 1, so that commands meet each other's objects.
std::string RandomCommand(std::mt19937_64& random, uint64_t sequence);

}  // namespace sluice::fuzz
