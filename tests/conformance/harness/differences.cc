// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/harness/differences.h"

#include <sstream>
#include <string>

#include "tests/conformance/harness/harness.h"

namespace sluice::conformance {
namespace {

bool BeginsWithOneOf(const std::string& version, std::string_view list) {
  std::istringstream words{std::string(list)};
  for (std::string word; words >> word;) {
    if (version.starts_with(word)) return true;
  }
  return list.empty();
}

}  // namespace

const Difference* FindDifference(std::string_view name) {
  const Harness& harness = TheHarness();
  for (std::span<const Difference> table :
       {PoclDifferences(), NvidiaDifferences(), RusticlDifferences()}) {
    for (const Difference& row : table) {
      if (row.name != name) continue;
      if (harness.platform_name.find(row.platform) == std::string::npos) continue;
      if (!BeginsWithOneOf(harness.driver_version, row.versions)) continue;
      if (harness.IsSluice() && row.where == Where::kNative) continue;
      return &row;
    }
  }
  return nullptr;
}

}  // namespace sluice::conformance
