// SPDX-License-Identifier: Apache-2.0
#include "client_icd/connect/remote_library.h"

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "broker/base/grpc_environment.h"
#include "broker/os/descriptor_identity.h"
#include "broker/os/dynamic_library.h"
#include "broker/os/this_process.h"
#include "client_icd/base/client_log.h"
#include "client_icd/connect/foreign_grpc.h"
#include "client_icd/connect/helper_program.h"
#include "client_icd/connect/network_helper.h"
#include "proto/status_macros.h"

namespace sluice::client {
namespace {

constexpr char kLibrary[] = "libsluice_remote.so";

struct Plugin {
  RemoteFunctions functions;
  SluiceRemoteCheck* check = nullptr;
};

absl::StatusOr<Plugin> Load() {
  const bool brings_grpc = !HasGrpc();
  ASSIGN_OR_RETURN(const std::string path, FindBesideLibrary(kLibrary));
  ASSIGN_OR_RETURN(os::DynamicLibrary library, os::DynamicLibrary::Open(path));
  library.KeepForever();
  Plugin plugin;
  plugin.functions.connect =
      reinterpret_cast<SluiceRemoteConnect*>(library.Find("sluice_remote_connect"));
  plugin.functions.describe =
      reinterpret_cast<SluiceRemoteDescribe*>(library.Find("sluice_remote_describe"));
  plugin.check = reinterpret_cast<SluiceRemoteCheck*>(library.Find("sluice_remote_check"));
  if (plugin.functions.connect == nullptr || plugin.functions.describe == nullptr ||
      plugin.check == nullptr) {
    return absl::NotFoundError(absl::StrCat(path, " is of another version of Sluice"));
  }
  auto* const silence =
      reinterpret_cast<SluiceRemoteSilenceGrpc*>(library.Find("sluice_remote_silence_grpc"));
  if (brings_grpc && silence != nullptr) silence();
  return plugin;
}

// An error: gRPC cannot be used in this process, now or ever.
absl::Status CheckGrpc(const Plugin& plugin) {
  if (!os::HasStandardDescriptors()) {
    return absl::FailedPreconditionError(
        "this program has closed descriptor 0, 1 or 2, which gRPC's sockets would get");
  }
  if (plugin.check == nullptr) {
    RETURN_IF_ERROR(CheckGrpcEnvironment());
    return CheckNoForeignGrpc();
  }
  const char* const reason = plugin.check();
  return reason == nullptr ? absl::OkStatus() : absl::FailedPreconditionError(reason);
}

}  // namespace

absl::StatusOr<RemoteFunctions> FindRemoteFunctions() {
  static absl::Mutex* const mu = new absl::Mutex;
  static Plugin* const plugin = new Plugin;
  absl::MutexLock lock(mu);
  const absl::Status usable = CheckGrpc(*plugin);
  if (!usable.ok()) {
    ClientLog(ClientLogLevel::kInfo,
              absl::StrCat(usable.message(), "; a process of its own does the network's work"));
    absl::StatusOr<RemoteFunctions> helper = FindNetworkHelper();
    if (helper.ok()) return helper;
    return absl::FailedPreconditionError(
        absl::StrCat(usable.message(), "; ", helper.status().message()));
  }
  if (plugin->check == nullptr) {
    ASSIGN_OR_RETURN(*plugin, Load());
  }
  return plugin->functions;
}

}  // namespace sluice::client
