// SPDX-License-Identifier: Apache-2.0
#include "client_icd/foreign_grpc.h"

#include <dlfcn.h>
#include <link.h>

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

// The file of another kind of gRPC that the process has: one without TLS, or one that the
// application exports itself; empty if there is none. Our gRPC would call into it where
// both have a function of a name, and end the process. (Seen with libgrpc++_unsecure: neither
// RTLD_DEEPBIND nor a local scope keeps the two apart, since they share GNU unique symbols.)
std::string ForeignGrpc() {
  std::string found;
  const auto look = [](dl_phdr_info* object, size_t, void* out) {
    const std::string_view path = object->dlpi_name == nullptr ? "" : object->dlpi_name;
    const std::string_view name = path.substr(path.rfind('/') + 1);
    if (!name.starts_with("libgrpc_unsecure.so") && !name.starts_with("libgrpc++_unsecure.so")) {
      return 0;
    }
    static_cast<std::string*>(out)->assign(path);
    return 1;
  };
  ::dl_iterate_phdr(look, &found);
  Dl_info exporter = {};
  const void* exported = ::dlsym(RTLD_DEFAULT, "grpc_init");
  if (!found.empty() || exported == nullptr || ::dladdr(exported, &exporter) == 0) return found;
  const std::string_view path = exporter.dli_fname == nullptr ? "" : exporter.dli_fname;
  return path.find("/libgrpc.so") != path.npos ? "" : std::string(path);
}

}  // namespace

absl::Status CheckNoForeignGrpc() {
  const std::string foreign = ForeignGrpc();
  if (foreign.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "this program has a gRPC of its own in ", foreign,
      ", which cannot be beside the one that network endpoints and shared resources need; link it "
      "to libgrpc"));
}

}  // namespace sluice
