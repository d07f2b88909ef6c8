// SPDX-License-Identifier: Apache-2.0
// A fuzzer's functions for the program around it: libFuzzer, or standalone_main.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

// libFuzzer's entry: runs one input. Returns 0.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// Input that has a chance to get somewhere; for the standalone program.
std::string MakeFuzzInput(std::mt19937_64& random);
