// SPDX-License-Identifier: Apache-2.0
#include "broker/quotas.h"

#include "broker/children/workers.h"
#include "broker/config/policy.h"
#include "broker/resources/hub.h"
#include "broker/tenants/tenant.h"

namespace sluice::broker {

AccountQuotas QuotasOf(const Account& account, const std::set<std::string>& domains,
                       const Policy& policy, const Workers& workers, const ResourceHub& resources) {
  AccountQuotas all;
  all.account = account.name;
  all.share = account.share;
  policy.AddQuotas(account, &all.quotas);
  workers.AddQuotas(account, domains, &all.quotas);
  resources.AddQuotas(account, &all.quotas);
  return all;
}

}  // namespace sluice::broker
