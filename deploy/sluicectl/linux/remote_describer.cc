// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "absl/strings/str_cat.h"
#include "broker/base/client_files.h"
#include "broker/os/dynamic_library.h"
#include "deploy/sluicectl/endpoint.h"
#include "deploy/sluicectl/remote_client.h"

namespace sluice::ctl {

absl::StatusOr<RemoteDescriber> FindRemoteDescriber() {
  const absl::StatusOr<std::string> icd = FindIcdLibrary();
  if (!icd.ok()) return icd.status();
  const absl::StatusOr<std::string> path =
      FindClientFile(icd->substr(0, icd->rfind('/') + 1), "libsluice_remote.so");
  if (!path.ok()) return path.status();
  absl::StatusOr<os::DynamicLibrary> library = os::DynamicLibrary::Open(*path);
  if (!library.ok()) return library.status();
  library->KeepForever();  // It has threads.
  const RemoteDescriber found{
      reinterpret_cast<SluiceRemoteDescribe*>(library->Find("sluice_remote_describe")),
      reinterpret_cast<SluiceRemoteSilenceGrpc*>(library->Find("sluice_remote_silence_grpc"))};
  if (found.describe != nullptr && found.silence != nullptr) return found;
  return absl::NotFoundError(absl::StrCat(*path, " is of another version of Sluice"));
}

}  // namespace sluice::ctl
