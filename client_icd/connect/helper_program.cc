// SPDX-License-Identifier: Apache-2.0
#include "client_icd/connect/helper_program.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "broker/base/client_files.h"
#include "broker/base/grpc_environment.h"
#include "broker/os/this_process.h"
#include "proto/status_macros.h"

namespace sluice::client {

absl::StatusOr<std::string> FindBesideLibrary(const std::string& name) {
  return FindClientFile(os::LibraryFolderOf(reinterpret_cast<const void*>(&FindBesideLibrary)),
                        name);
}

absl::StatusOr<std::shared_ptr<HelperProcess>> StartHelperProgram(
    const std::string& name, std::vector<std::string> arguments,
    std::vector<std::pair<int, int>> descriptors) {
  os::SpawnOptions options;
  ASSIGN_OR_RETURN(options.path, FindBesideLibrary(name));
  options.argv0 = os::ProcessName();  // The name by which the daemon lists the session.
  options.arguments = std::move(arguments);
  for (std::string& variable : os::OwnEnvironment()) {
    // The helper does not get what the application has loaded into itself (another gRPC, perhaps).
    if (absl::StartsWith(variable, "LD_PRELOAD=")) continue;
    // The helper is there for processes in which gRPC cannot be, perhaps because of this.
    if (absl::StartsWith(variable, absl::StrCat(kGrpcPollStrategy, "="))) continue;
    options.environment.push_back(std::move(variable));
  }
  options.descriptors = std::move(descriptors);
  options.sandbox.new_session = true;
  // Silent, as the library is: the application's stderr is for log lines that were asked for.
  if (!os::EnvironmentVariable("SLUICE_LOG").has_value()) options.output = os::kNoOutput;
  ASSIGN_OR_RETURN(const pid_t number, os::SpawnUnseen(options));
  return std::make_shared<HelperProcess>(number);
}

}  // namespace sluice::client
