// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/containers/surroundings.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace sluice::ctl {
namespace {

struct Mark {
  const char* path;
  const char* name;
};

constexpr Mark kMarks[] = {{"/.flatpak-info", "a Flatpak sandbox"},
                           {"/run/.toolboxenv", "a container of toolbox's"},
                           {"/run/.containerenv", "a container of podman's"},
                           {"/.dockerenv", "a container of Docker's"},
                           {"/run/host/container-manager", "a container"},
                           {"/var/run/secrets/kubernetes.io", "a container of Kubernetes'"}};

}  // namespace

std::string ContainerAround() {
  std::error_code error;
  for (const Mark& mark : kMarks) {
    if (std::filesystem::exists(mark.path, error)) return mark.name;
  }
  // Set by podman, systemd-nspawn, LXC and bubblewrap's users.
  const char* variable = std::getenv("container");
  if (variable == nullptr || variable[0] == '\0') return "";
  return absl::StrCat("a container (", variable, ")");
}

}  // namespace sluice::ctl
