// SPDX-License-Identifier: Apache-2.0
#include "broker/os/local_endpoint.h"

#include <sys/un.h>
#include <unistd.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "broker/base/daemon_places.h"
#include "broker/os/this_process.h"

namespace sluice::os {
namespace {

bool Exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

}  // namespace

absl::StatusOr<std::string> ParseLocalName(std::string_view text) {
  if (text.starts_with("//")) text.remove_prefix(2);  // unix:///path is the same.
  if (!text.starts_with("/")) return absl::InvalidArgumentError("an absolute path");
  std::string name = NormalLocalName(std::string(text));
  constexpr size_t kMost = sizeof(sockaddr_un::sun_path) - 1;
  if (name.size() > kMost) {
    return absl::InvalidArgumentError(
        absl::StrCat("a path of at most ", kMost, " characters, and it has ", name.size()));
  }
  return name;
}

std::string NormalLocalName(const std::string& name) {
  if (!name.starts_with('/')) return name;
  const bool folder = name.ends_with('/') || name.ends_with("/.");
  std::string normal;
  for (const auto part : absl::StrSplit(name, '/', absl::SkipEmpty())) {
    if (part != ".") absl::StrAppend(&normal, "/", part);
  }
  return folder ? normal + "/" : normal;
}

const char* LocalEndpointForm() { return "unix:/ABSOLUTE/PATH"; }

const char* LocalNameForm() { return "/ABSOLUTE/PATH"; }

const char* StartDaemonAdvice() {
  return "start it: `systemctl start sluiced`, or `sluiced`; or name its socket in SLUICE_ENDPOINT";
}

std::string DefaultClientName() {
  const std::string machines = "/run/sluice/clients/broker.sock";
  const std::string runtime = EnvironmentVariable("XDG_RUNTIME_DIR").value_or("");
  std::vector<std::string> names;
  if (runtime.starts_with('/')) names.push_back(runtime + "/sluice/clients/broker.sock");
  names.push_back(machines);
  for (const std::string& name : names) {
    if (Exists(name)) return name;
    const std::string old = OldPlacesServed() ? OldClientNameOf(name) : "";
    if (!old.empty() && Exists(old)) return old;
  }
  return machines;
}

}  // namespace sluice::os
