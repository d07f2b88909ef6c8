// SPDX-License-Identifier: Apache-2.0
//
// The use that an account makes of each thing that it may have only so much of. It is shown to
// people: the account's own (a client asks) and operators. Nothing is decided here; each part
// counts and limits its own.
//
// Loop thread only.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "proto/quota_messages.h"

namespace sluice::broker {

class Policy;
class ResourceHub;
class Workers;
struct Account;

struct QuotaUse {
  wire::QuotaKind kind = wire::QuotaKind::kSessions;
  std::optional<uint64_t> used;  // Nothing: nobody counts it.
  uint64_t limit = 0;            // 0: none.
};

struct AccountQuotas {
  std::string account;
  uint32_t share = 0;
  std::vector<QuotaUse> quotas;
};

// `domains`: those of the account that are known.
AccountQuotas QuotasOf(const Account& account, const std::set<std::string>& domains,
                       const Policy& policy, const Workers& workers, const ResourceHub& resources);

}  // namespace sluice::broker
