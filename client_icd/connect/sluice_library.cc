// SPDX-License-Identifier: Apache-2.0
#include "client_icd/connect/sluice_library.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "broker/os/descriptor_identity.h"
#include "broker/os/dynamic_library.h"
#include "broker/os/local_socket.h"
#include "broker/os/this_process.h"
#include "client_icd/base/per_process.h"
#include "client_icd/connect/foreign_grpc.h"
#include "proto/status_macros.h"

namespace sluice::client::sharing {
namespace {

constexpr char kLibrary[] = SLUICE_LIBRARY_FILE;  // client_icd/CMakeLists.txt

template <typename Function>
bool Find(const os::DynamicLibrary& library, const char* name, Function* out) {
  *out = reinterpret_cast<Function>(library.Find(name));
  return *out != nullptr;
}

std::string LibraryPath() {
  return os::LibraryFolderOf(reinterpret_cast<const void*>(&ConnectSluice)) + kLibrary;
}

absl::StatusOr<const SluiceFunctions*> Load() {
  RETURN_IF_ERROR(CheckNoForeignGrpc());
  absl::StatusOr<os::DynamicLibrary> library = os::DynamicLibrary::Open(LibraryPath());
  // The system's loader says no more than that it cannot open the file.
  if (!library.ok() && !os::IsStillThere(os::IdentityOf(os::OpenSentinel().get()))) {
    return absl::ResourceExhaustedError(absl::StrCat(
        library.status().message(), "; this process has no descriptor left (ulimit -n)"));
  }
  if (!library.ok()) return library.status();
  auto functions = std::make_unique<SluiceFunctions>();
  const bool whole = Find(*library, "sluice_error_text", &functions->error_text) &&
                     Find(*library, "sluice_connect", &functions->connect) &&
                     Find(*library, "sluice_disconnect", &functions->disconnect) &&
                     Find(*library, "sluice_describe", &functions->describe) &&
                     Find(*library, "sluice_export", &functions->export_handle) &&
                     Find(*library, "sluice_handle_close", &functions->handle_close) &&
                     Find(*library, "sluice_map", &functions->map) &&
                     Find(*library, "sluice_unmap", &functions->unmap) &&
                     Find(*library, "sluice_acquire", &functions->acquire) &&
                     Find(*library, "sluice_release", &functions->release);
  library->KeepForever();
  if (!whole) return absl::NotFoundError(absl::StrCat(kLibrary, " is of another version"));
  return functions.release();
}

// Of one process: a child of a fork makes connections of its own.
struct State {
  absl::Mutex mu;
  const SluiceFunctions* functions ABSL_GUARDED_BY(mu) = nullptr;
  std::map<std::string, std::weak_ptr<SluiceConnection>> connections ABSL_GUARDED_BY(mu);
};

State& TheState() {
  static PerProcess<State> states;
  return states.Get();
}

}  // namespace

bool HasSluiceLibrary() { return os::IsFileOfThisHost(os::PortablePath(LibraryPath())); }

absl::StatusOr<std::shared_ptr<SluiceConnection>> ConnectSluice(const std::string& path) {
  State& state = TheState();
  absl::MutexLock lock(&state.mu);
  std::weak_ptr<SluiceConnection>& known = state.connections[path];
  if (std::shared_ptr<SluiceConnection> connection = known.lock()) return connection;
  if (state.functions == nullptr) {
    ASSIGN_OR_RETURN(state.functions, Load());
  }
  sluice_connection* raw = nullptr;
  const sluice_status told =
      state.functions->connect(absl::StrCat(os::kLocalScheme, path).c_str(), &raw);
  if (told == SLUICE_LIMIT) return absl::ResourceExhaustedError(state.functions->error_text());
  if (told != SLUICE_OK) return absl::UnavailableError(state.functions->error_text());
  auto connection = std::make_shared<SluiceConnection>(*state.functions, raw);
  known = connection;
  return connection;
}

void ForgetSluiceConnection(const std::shared_ptr<SluiceConnection>& connection) {
  State& state = TheState();
  absl::MutexLock lock(&state.mu);
  for (auto& [name, known] : state.connections) {
    if (known.lock() == connection) known.reset();
  }
}

}  // namespace sluice::client::sharing
