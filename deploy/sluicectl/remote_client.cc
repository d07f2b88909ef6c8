// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/remote_client.h"

#include "absl/strings/str_cat.h"
#include "broker/os/dynamic_library.h"
#include "deploy/sluicectl/endpoint.h"
#include "proto/remote_describe.h"

namespace sluice {

absl::StatusOr<std::string> DescribeNetwork(const std::string& target, int timeout_ms) {
  const absl::StatusOr<std::string> icd = FindIcdLibrary();
  if (!icd.ok()) return icd.status();
  const std::string path = absl::StrCat(icd->substr(0, icd->rfind('/') + 1), "libsluice_remote.so");
  absl::StatusOr<DynamicLibrary> library = DynamicLibrary::Open(path);
  if (!library.ok()) return library.status();
  library->KeepForever();  // It has threads.
  auto* const describe =
      reinterpret_cast<SluiceRemoteDescribe*>(library->Find("sluice_remote_describe"));
  auto* const silence =
      reinterpret_cast<SluiceRemoteSilenceGrpc*>(library->Find("sluice_remote_silence_grpc"));
  if (describe == nullptr || silence == nullptr) {
    return absl::NotFoundError(absl::StrCat(path, " is of another version of Sluice"));
  }
  silence();  // Of this program, which says itself what went wrong.
  std::string snapshot;
  char error[1024] = "";
  const auto deliver = [](void* to, const char* data, uint64_t bytes) {
    static_cast<std::string*>(to)->assign(data, bytes);
  };
  if (!describe(target.c_str(), static_cast<uint32_t>(timeout_ms), deliver, &snapshot, error,
                sizeof(error))) {
    return absl::UnavailableError(error);
  }
  return snapshot;
}

}  // namespace sluice
