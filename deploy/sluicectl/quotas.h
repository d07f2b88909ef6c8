// SPDX-License-Identifier: Apache-2.0
//
// Quotas as a person reads them, and as JSON. Single thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace sluice::ctl {

struct ShownQuota {
  std::string name;              // "resource_bytes".
  std::optional<uint64_t> used;  // Nothing: nobody counts it.
  uint64_t limit = 0;            // 0: none.
};

// "12.0 MiB", or "-" if it is not counted.
std::string UsedText(const ShownQuota& quota);
// "4.0 GiB", or "no limit".
std::string LimitText(const ShownQuota& quota);
// "resource bytes 12.0 MiB of 4.0 GiB".
std::string QuotaText(const ShownQuota& quota);
bool IsFull(const ShownQuota& quota);

// By their names: {"used": 12, "limit": 4096}, each null where there is none.
nlohmann::json QuotasJson(const std::vector<ShownQuota>& quotas);

}  // namespace sluice::ctl
