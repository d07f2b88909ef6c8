// SPDX-License-Identifier: Apache-2.0
#include "platform_win/handles/mappings.h"

#include <map>
#include <mutex>
#include <shared_mutex>
#include <utility>

namespace sluice::os {
namespace {

struct Mappings {
  std::shared_mutex mutex;
  std::map<uintptr_t, std::pair<size_t, std::shared_ptr<const Section>>> by_address;
};

Mappings& All() {
  static Mappings* mappings = new Mappings;
  return *mappings;
}

}  // namespace

void NoteMapping(const void* data, size_t size, std::shared_ptr<const Section> section) {
  const std::unique_lock<std::shared_mutex> lock(All().mutex);
  All().by_address[reinterpret_cast<uintptr_t>(data)] = {size, std::move(section)};
}

void ForgetMapping(const void* data) {
  const std::unique_lock<std::shared_mutex> lock(All().mutex);
  All().by_address.erase(reinterpret_cast<uintptr_t>(data));
}

MappedWord FindMappedWord(const void* word) {
  const auto address = reinterpret_cast<uintptr_t>(word);
  const std::shared_lock<std::shared_mutex> lock(All().mutex);
  auto next = All().by_address.upper_bound(address);
  if (next == All().by_address.begin()) return {};
  const auto& [start, mapping] = *--next;
  if (address - start >= mapping.first) return {};
  return {mapping.second, address - start};
}

}  // namespace sluice::os
