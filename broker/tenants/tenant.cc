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

std::string FolderNameOf(const std::string& name) {
  const size_t colon = name.find(':');
  std::string folder = name.substr(0, colon) + "-";
  for (const char c : name.substr(colon + 1)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_';
    if (plain) {
      folder += c;
    } else {
      absl::StrAppend(&folder, "%", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    }
  }
  return folder;  // At most 4 + 3 * 80 bytes (daemon/gateway/auth.h): a file name may have 255.
}

}  // namespace sluice::broker
