// SPDX-License-Identifier: Apache-2.0
#include "broker/base/daemon_places.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "broker/os/local_endpoint.h"
#include "broker/os/this_process.h"

namespace sluice {
namespace {

constexpr char kClients[] = "/clients";

std::string ParentFolder(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::string LastPartOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool HasClientsFolder(const std::string& client_name) {
  return absl::EndsWith(ParentFolder(client_name), kClients);
}

// The names of the other folders begin with this.
std::string BaseOf(const std::string& client_name) {
  const std::string folder = ParentFolder(client_name);
  const std::string base = HasClientsFolder(client_name) ? ParentFolder(folder) : folder;
  return base.empty() ? "/sluice" : base;
}

// Without links: /var/run is /run.
std::string RealFolderOf(const std::string& path) {
  std::error_code error;
  const std::filesystem::path real =
      std::filesystem::weakly_canonical(ParentFolder(path) + "/", error);
  if (error) return ParentFolder(path);
  return std::string(absl::StripSuffix(real.string(), "/"));
}

}  // namespace

std::string DefaultLocalName() {
  const std::string runtime = os::EnvironmentVariable("XDG_RUNTIME_DIR").value_or("");
  const bool own = ::geteuid() != 0 && absl::StartsWith(runtime, "/");
  return os::NormalLocalName(absl::StrCat(own ? runtime : "/run", "/sluice/clients/broker.sock"));
}

std::string AdminNameOf(const std::string& client_name) {
  return BaseOf(client_name) + "-admin/admin.sock";
}

std::string MonitorNameOf(const std::string& client_name) {
  return MonitorNameBeside(AdminNameOf(client_name));
}

std::string MonitorNameBeside(const std::string& admin_name) {
  const std::string file = LastPartOf(admin_name);
  if (file == "admin.sock") return ParentFolder(admin_name) + "/monitor.sock";
  return absl::StrCat(ParentFolder(admin_name), "/", absl::StripSuffix(file, ".sock"),
                      "-monitor.sock");
}

std::string TenantNameOf(const std::string& client_name, const std::string& tenant) {
  return absl::StrCat(BaseOf(client_name), "-tenants/", tenant, "/broker.sock");
}

std::string StateFolderOf(const std::string& client_name) {
  return BaseOf(client_name) + (HasClientsFolder(client_name) ? "" : "-state");
}

std::string StateFileOf(const std::string& client_name, const std::string& suffix) {
  return absl::StrCat(StateFolderOf(client_name), "/", LastPartOf(client_name), suffix);
}

bool IsInClientsReach(const std::string& name, const std::string& client_name) {
  const std::string folder = RealFolderOf(name);
  const std::string clients = RealFolderOf(client_name);
  // Everything is below "/".
  if (folder == clients || (!clients.empty() && absl::StartsWith(folder, clients + "/")))
    return true;
  return HasClientsFolder(client_name) && folder == RealFolderOf(clients);
}

std::string OldClientNameOf(const std::string& client_name) {
  if (!HasClientsFolder(client_name)) return "";
  return absl::StrCat(ParentFolder(ParentFolder(client_name)), "/", LastPartOf(client_name));
}

std::string OldAdminNameOf(const std::string& client_name) {
  const std::string old = OldClientNameOf(client_name);
  return ParentFolder(old.empty() ? client_name : old) + "/admin.sock";
}

}  // namespace sluice
