// SPDX-License-Identifier: Apache-2.0
#include "client_icd/base/args.h"

namespace sluice::client {

namespace {
constexpr size_t kMaxProperties = 64;
}  // namespace

bool ReadProperties(const uint64_t* properties, PropertyList* out) {
  out->words.clear();
  out->given = properties != nullptr;
  if (properties == nullptr) return true;
  for (size_t i = 0; properties[i] != 0; i += 2) {
    if (i / 2 == kMaxProperties) return false;
    out->words.push_back(properties[i]);
    out->words.push_back(properties[i + 1]);
  }
  return true;
}

const uint64_t* PropertyList::Find(uint64_t name) const {
  for (size_t i = 0; i + 1 < words.size(); i += 2) {
    if (words[i] == name) return &words[i + 1];
  }
  return nullptr;
}

bool PropertyList::HasDuplicates() const {
  for (size_t i = 0; i < words.size(); i += 2) {
    if (Find(words[i]) != &words[i + 1]) return true;
  }
  return false;
}

std::vector<uint64_t> PropertyList::WithTerminator() const {
  std::vector<uint64_t> list = words;
  if (given) list.push_back(0);
  return list;
}

cl_int CheckWorkDim(cl_uint work_dim) {
  return work_dim >= 1 && work_dim <= 3 ? CL_SUCCESS : CL_INVALID_WORK_DIMENSION;
}

}  // namespace sluice::client
