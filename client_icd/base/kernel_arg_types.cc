// SPDX-License-Identifier: Apache-2.0
#include "client_icd/base/kernel_arg_types.h"

#include <iterator>

namespace sluice::client {
namespace {

struct Scalar {
  std::string_view name;
  size_t bytes;
  bool has_vectors;
};

constexpr Scalar kScalars[] = {
    {"char", 1, true},
    {"uchar", 1, true},
    {"short", 2, true},
    {"ushort", 2, true},
    {"int", 4, true},
    {"uint", 4, true},
    {"long", 8, true},
    {"ulong", 8, true},
    {"half", 2, true},
    {"float", 4, true},
    {"double", 8, true},
    {"signed char", 1, false},
    {"unsigned char", 1, false},
    {"unsigned short", 2, false},
    {"unsigned int", 4, false},
    {"unsigned", 4, false},
    {"signed int", 4, false},
    {"signed", 4, false},
    {"unsigned long", 8, false},
    {"signed long", 8, false},
    {"signed short", 2, false},
};

// How many elements a vector takes in memory; a vector of 3 is stored as one of 4 (OpenCL C 3.0
// section 6.3.5).
size_t StoredElements(std::string_view digits) {
  if (digits == "2") return 2;
  if (digits == "3" || digits == "4") return 4;
  if (digits == "8") return 8;
  return digits == "16" ? 16 : 0;
}

}  // namespace

size_t ValueTypeBytes(std::string_view type_name) {
  for (const Scalar& scalar : kScalars) {
    if (type_name.substr(0, scalar.name.size()) != scalar.name) continue;
    const std::string_view rest = type_name.substr(scalar.name.size());
    if (rest.empty()) return scalar.bytes;
    const size_t elements = scalar.has_vectors ? StoredElements(rest) : 0;
    if (elements != 0) return elements * scalar.bytes;
  }
  return 0;
}

}  // namespace sluice::client
