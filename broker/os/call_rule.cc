// SPDX-License-Identifier: Apache-2.0
#include <iterator>

#include "broker/os/sandbox.h"

namespace sluice::os {
namespace {

constexpr std::string_view kNames[] = {"listed", "logged", "any"};  // In CallRule's order.

}  // namespace

std::optional<CallRule> ParseCallRule(std::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (name == kNames[i]) return static_cast<CallRule>(i);
  }
  return std::nullopt;
}

std::string_view CallRuleName(CallRule rule) { return kNames[static_cast<size_t>(rule)]; }

}  // namespace sluice::os
