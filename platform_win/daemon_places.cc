// SPDX-License-Identifier: Apache-2.0
#include "broker/base/daemon_places.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace sluice {

std::string DefaultLocalName() { return R"(\\.\pipe\sluice-broker)"; }

std::string AdminNameOf(const std::string& client_name) {
  return absl::StrCat(client_name, "-admin");
}

std::string MonitorNameOf(const std::string& client_name) {
  return absl::StrCat(client_name, "-monitor");
}

std::string MonitorNameBeside(const std::string& admin_name) {
  return absl::StrCat(absl::StripSuffix(admin_name, "-admin"), "-monitor");
}

std::string TenantNameOf(const std::string& client_name, const std::string& tenant) {
  return absl::StrCat(client_name, "-", tenant);
}

std::string StateFolderOf(const std::string&) { return ""; }

std::string StateFileOf(const std::string&, const std::string&) { return ""; }

// Pipes lie in no folder that could be given to clients: each has rights of its own.
bool IsInClientsReach(const std::string&, const std::string&) { return false; }

std::string OldClientNameOf(const std::string&) { return ""; }

std::string OldAdminNameOf(const std::string&) { return ""; }

}  // namespace sluice
