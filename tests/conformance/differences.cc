// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/differences.h"

#include "tests/conformance/harness.h"

namespace sluice::conformance {

const Difference* FindDifference(std::string_view name) {
  const Harness& harness = TheHarness();
  for (std::span<const Difference> table :
       {PoclDifferences(), NvidiaDifferences(), RusticlDifferences()}) {
    for (const Difference& row : table) {
      if (row.name != name) continue;
      if (harness.platform_name.find(row.platform) == std::string::npos) continue;
      if (!harness.driver_version.starts_with(row.version)) continue;
      if (harness.IsSluice() && row.where == Where::kNative) continue;
      return &row;
    }
  }
  return nullptr;
}

}  // namespace sluice::conformance
