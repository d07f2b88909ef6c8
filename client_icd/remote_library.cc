// SPDX-License-Identifier: Apache-2.0
#include "client_icd/remote_library.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "broker/os/dynamic_library.h"
#include "broker/os/this_process.h"
#include "client_icd/foreign_grpc.h"
#include "proto/status_macros.h"

namespace sluice {
namespace {

constexpr char kLibrary[] = "libsluice_remote.so";

absl::StatusOr<RemoteFunctions> Load() {
  RETURN_IF_ERROR(CheckNoForeignGrpc());
  const bool brings_grpc = !HasGrpc();
  const std::string folder = LibraryFolderOf(reinterpret_cast<const void*>(&Load));
  absl::Status last = absl::NotFoundError(absl::StrCat(
      kLibrary, " is not beside the driver in ", folder, ": install Sluice's network transport"));
  for (const char* below : {"", "sluice/", "../lib/sluice/"}) {
    const std::string path = absl::StrCat(folder, below, kLibrary);
    if (!IsFileOfThisHost(path)) continue;
    absl::StatusOr<DynamicLibrary> library = DynamicLibrary::Open(path);
    if (!library.ok()) {
      last = library.status();
      continue;
    }
    RemoteFunctions found;
    found.connect = reinterpret_cast<SluiceRemoteConnect*>(library->Find("sluice_remote_connect"));
    found.describe =
        reinterpret_cast<SluiceRemoteDescribe*>(library->Find("sluice_remote_describe"));
    library->KeepForever();
    auto* const silence =
        reinterpret_cast<SluiceRemoteSilenceGrpc*>(library->Find("sluice_remote_silence_grpc"));
    if (brings_grpc && silence != nullptr) silence();
    if (found.connect != nullptr && found.describe != nullptr) return found;
    last = absl::NotFoundError(absl::StrCat(path, " is of another version of Sluice"));
  }
  return last;
}

}  // namespace

absl::StatusOr<RemoteFunctions> FindRemoteFunctions() {
  static absl::Mutex* const mu = new absl::Mutex;
  static RemoteFunctions* const found = new RemoteFunctions;
  absl::MutexLock lock(mu);
  if (found->connect == nullptr) {
    ASSIGN_OR_RETURN(*found, Load());
  }
  return *found;
}

}  // namespace sluice
