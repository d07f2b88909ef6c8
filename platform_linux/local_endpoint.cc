// SPDX-License-Identifier: Apache-2.0
#include "broker/os/local_endpoint.h"

#include <unistd.h>

#include "broker/os/this_process.h"

namespace sluice {

absl::StatusOr<std::string> ParseLocalName(std::string_view text) {
  if (text.starts_with("//")) text.remove_prefix(2);  // unix:///path is the same.
  if (!text.starts_with("/")) return absl::InvalidArgumentError("an absolute path");
  return std::string(text);
}

const char* LocalEndpointForm() { return "unix:/ABSOLUTE/PATH"; }

const char* LocalNameForm() { return "/ABSOLUTE/PATH"; }

const char* StartDaemonAdvice() {
  return "start it: `systemctl start sluiced`, or `sluiced`; or name its socket in SLUICE_ENDPOINT";
}

std::string DefaultClientName() {
  const std::string runtime = EnvironmentVariable("XDG_RUNTIME_DIR").value_or("");
  if (runtime.starts_with('/')) {
    const std::string path = runtime + "/sluice/broker.sock";
    if (::access(path.c_str(), F_OK) == 0) return path;
  }
  return "/run/sluice/broker.sock";
}

}  // namespace sluice
