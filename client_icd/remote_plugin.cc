// SPDX-License-Identifier: Apache-2.0
#include "client_icd/remote_plugin.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "broker/os/dynamic_library.h"
#include "client_icd/foreign_grpc.h"
#include "proto/status_macros.h"

namespace sluice {
namespace {

constexpr char kLibrary[] = "libsluice_remote.so";
constexpr uint32_t kDefaultTimeoutMs = 2'000;

struct Plugin {
  SluiceRemoteConnect* connect = nullptr;
  SluiceRemoteDescribe* describe = nullptr;
};

absl::StatusOr<Plugin> Load() {
  RETURN_IF_ERROR(CheckNoForeignGrpc());
  Dl_info self = {};
  if (::dladdr(reinterpret_cast<const void*>(&Load), &self) == 0 || self.dli_fname == nullptr) {
    return absl::NotFoundError("cannot tell where this driver's library lies");
  }
  std::string folder(self.dli_fname);
  folder.resize(folder.rfind('/') == std::string::npos ? 0 : folder.rfind('/') + 1);
  absl::Status last = absl::NotFoundError(absl::StrCat(kLibrary, " is not beside ", self.dli_fname,
                                                       ": install Sluice's network transport"));
  for (const char* below : {"", "sluice/", "../lib/sluice/"}) {
    const std::string path = absl::StrCat(folder, below, kLibrary);
    if (::access(path.c_str(), F_OK) != 0) continue;
    absl::StatusOr<DynamicLibrary> library = DynamicLibrary::Open(path);
    if (!library.ok()) {
      last = library.status();
      continue;
    }
    Plugin plugin;
    plugin.connect = reinterpret_cast<SluiceRemoteConnect*>(library->Find("sluice_remote_connect"));
    plugin.describe =
        reinterpret_cast<SluiceRemoteDescribe*>(library->Find("sluice_remote_describe"));
    library->KeepForever();
    if (plugin.connect != nullptr && plugin.describe != nullptr) return plugin;
    last = absl::NotFoundError(absl::StrCat(path, " is of another version of Sluice"));
  }
  return last;
}

absl::StatusOr<Plugin> GetPlugin() {
  static absl::Mutex* const mu = new absl::Mutex;
  static Plugin* const loaded = new Plugin;
  absl::MutexLock lock(mu);
  if (loaded->connect == nullptr) {
    ASSIGN_OR_RETURN(*loaded, Load());
  }
  return *loaded;
}

uint32_t TimeoutMs() {
  const char* text = std::getenv("SLUICE_CONNECT_TIMEOUT_MS");
  uint32_t value = 0;
  return text != nullptr && absl::SimpleAtoi(text, &value) && value != 0 ? value
                                                                         : kDefaultTimeoutMs;
}

}  // namespace

absl::StatusOr<std::string> DescribeRemote(const std::string& target) {
  ASSIGN_OR_RETURN(const Plugin plugin, GetPlugin());
  std::string snapshot;
  char error[256] = "";
  const auto deliver = [](void* to, const char* data, uint64_t bytes) {
    static_cast<std::string*>(to)->assign(data, bytes);
  };
  if (!plugin.describe(target.c_str(), TimeoutMs(), deliver, &snapshot, error, sizeof(error))) {
    return absl::UnavailableError(error);
  }
  return snapshot;
}

absl::StatusOr<std::unique_ptr<Transport>> ConnectRemote(const std::string& target) {
  ASSIGN_OR_RETURN(const Plugin plugin, GetPlugin());
  char error[256] = "";
  bool refused = false;
  std::unique_ptr<Transport> transport(
      plugin.connect(target.c_str(), &refused, error, sizeof(error)));
  if (transport == nullptr) {
    return refused ? absl::ResourceExhaustedError(error) : absl::UnavailableError(error);
  }
  return transport;
}

}  // namespace sluice
