// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/quotas.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "deploy/sluicectl/admin_call.h"

namespace sluice::ctl {
namespace {

std::string NumberText(const ShownQuota& quota, uint64_t number) {
  return absl::EndsWith(quota.name, "bytes") ? Bytes(number) : absl::StrCat(number);
}

}  // namespace

std::string UsedText(const ShownQuota& quota) {
  return quota.used.has_value() ? NumberText(quota, *quota.used) : "-";
}

std::string LimitText(const ShownQuota& quota) {
  return quota.limit != 0 ? NumberText(quota, quota.limit) : "no limit";
}

std::string QuotaText(const ShownQuota& quota) {
  const std::string name = absl::StrReplaceAll(quota.name, {{"_bytes", ""}, {"_", " "}});
  if (!quota.used.has_value()) {
    return quota.limit != 0 ? absl::StrCat(name, " at most ", LimitText(quota))
                            : absl::StrCat(name, " not limited");
  }
  if (quota.limit == 0) return absl::StrCat(name, " ", UsedText(quota), ", not limited");
  return absl::StrCat(name, " ", UsedText(quota), " of ", LimitText(quota));
}

bool IsFull(const ShownQuota& quota) {
  return quota.limit != 0 && quota.used.has_value() && *quota.used >= quota.limit;
}

nlohmann::json QuotasJson(const std::vector<ShownQuota>& quotas) {
  nlohmann::json all = nlohmann::json::object();
  for (const ShownQuota& quota : quotas) {
    nlohmann::json& one = all[quota.name];
    one["used"] = nullptr;
    one["limit"] = nullptr;
    if (quota.used.has_value()) one["used"] = *quota.used;
    if (quota.limit != 0) one["limit"] = quota.limit;
  }
  return all;
}

}  // namespace sluice::ctl
