// SPDX-License-Identifier: Apache-2.0
#include "broker/tenants/tenant.h"

#include "absl/strings/str_cat.h"
#include "broker/os/peer_identity.h"

namespace sluice::broker {

Tenant Tenant::ForUid(uid_t uid) {
  Tenant tenant;
  tenant.user = os::UserName(uid);
  tenant.account.name = tenant.user;
  tenant.domain.name = tenant.user;
  return tenant;
}

Tenant Tenant::ForNetworkPeer(const std::string& peer) {
  Tenant tenant;
  tenant.user = absl::StrCat("net:", peer);
  tenant.account.name = tenant.user;
  tenant.account.network = true;
  tenant.domain.name = tenant.user;
  return tenant;
}

std::string TenantAccountName(const std::string& tenant) { return absl::StrCat("tenant:", tenant); }

}  // namespace sluice::broker
