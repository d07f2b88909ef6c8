// SPDX-License-Identifier: Apache-2.0
#include "broker/os/local_endpoint.h"

#include "broker/base/daemon_places.h"
#include "broker/os/local_socket.h"
#include "proto/status_macros.h"

namespace sluice::os {

absl::StatusOr<std::string> ParseLocalName(std::string_view text) {
  std::string name(text);
  if (!name.starts_with("\\")) name.insert(0, R"(\\.\pipe\)");
  RETURN_IF_ERROR(CheckLocalName(name));
  return name;
}

std::string NormalLocalName(const std::string& name) { return name; }

const char* LocalEndpointForm() { return "pipe:NAME"; }

const char* LocalNameForm() { return R"(a pipe, \\.\pipe\NAME)"; }

const char* StartDaemonAdvice() {
  return "start it: `sc.exe start Sluice`, or `sluiced --console`; or name its pipe in "
         "SLUICE_ENDPOINT";
}

std::string DefaultClientName() { return DefaultLocalName(); }

}  // namespace sluice::os
