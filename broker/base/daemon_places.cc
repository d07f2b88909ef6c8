// SPDX-License-Identifier: Apache-2.0
#include "broker/base/daemon_places.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "broker/base/version.h"

namespace sluice {
namespace {

// Empty if `version` is none.
std::vector<int> NumbersOf(std::string_view version) {
  std::vector<int> numbers;
  for (const absl::string_view part :
       absl::StrSplit(absl::string_view(version.data(), version.size()), '.')) {
    int number = 0;
    if (!absl::SimpleAtoi(part, &number)) return {};
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

bool OldPlacesServedBy(std::string_view version) {
  return NumbersOf(version) < NumbersOf(kOldPlacesEnd);
}

bool OldPlacesServed() { return OldPlacesServedBy(kVersion); }

}  // namespace sluice
