// SPDX-License-Identifier: Apache-2.0
#include "client_icd/connect/foreign_grpc.h"

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "broker/os/this_process.h"

namespace sluice::client {

namespace {

// Of what glibc keeps for a thread, a part is there once for all namespaces: with glibc 2.31 each
// would overwrite the other's, and gRPC's threads end the process.
absl::Status CheckFirstNamespace() {
  if (!os::InOtherNamespace()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "this program has loaded the driver by dlmopen(), and gRPC cannot be in a second namespace");
}

}  // namespace

#ifdef SLUICE_HIDES_GRPC

bool HasGrpc() { return false; }

absl::Status CheckNoForeignGrpc() { return CheckFirstNamespace(); }

#else

namespace {

// The file of another kind of gRPC that the process has: one without TLS, or one that the
// application exports itself; empty if there is none. Our gRPC would call into it where
// both have a function of a name, and end the process. (Seen with libgrpc++_unsecure: neither
// RTLD_DEEPBIND nor a local scope keeps the two apart, since they share GNU unique symbols.)
std::string ForeignGrpc() {
  for (const std::string& file : os::LoadedLibraryFiles()) {
    const std::string_view name = std::string_view(file).substr(file.rfind('/') + 1);
    if (name.starts_with("libgrpc_unsecure.so") || name.starts_with("libgrpc++_unsecure.so"))
      return file;
  }
  const void* exported = os::FindGlobalSymbol("grpc_init");
  if (exported == nullptr) return "";
  const std::string exporter = os::LibraryFileOf(exported);
  return exporter.find("/libgrpc.so") != exporter.npos ? "" : exporter;
}

}  // namespace

bool HasGrpc() {
  for (const std::string& file : os::LoadedLibraryFiles()) {
    const std::string_view name = std::string_view(file).substr(file.rfind('/') + 1);
    if (name.starts_with("libgpr.so") || name.starts_with("libgrpc.so")) return true;
  }
  return false;
}

absl::Status CheckNoForeignGrpc() {
  const std::string foreign = ForeignGrpc();
  if (foreign.empty()) return CheckFirstNamespace();
  return absl::FailedPreconditionError(absl::StrCat(
      "this program has a gRPC of its own in ", foreign,
      ", which cannot be beside the one that network endpoints and shared resources need; link it "
      "to libgrpc"));
}

#endif

}  // namespace sluice::client
