// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/linux/operators_sockets.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "broker/base/daemon_places.h"
#include "broker/os/local_socket.h"
#include "deploy/sluicectl/admin_channel.h"
#include "proto/admin.grpc.pb.h"

namespace sluice::ctl {
namespace {

namespace fs = std::filesystem;

constexpr int kPatienceMs = 500;
constexpr char kServiceAdminSocket[] = "/run/sluice-admin/admin.sock";

// Bounds the search: a folder for containers may be far above a socket.
constexpr int kDeepest = 4;
constexpr size_t kMostEntries = 4096;

bool HasTheirName(const std::string& name) {
  return name == "admin.sock" || name == "monitor.sock";
}

bool Contains(const fs::path& folder, const fs::path& path) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first ==
         folder.end();
}

}  // namespace

bool IsOperatorsSocket(const std::string& path, const std::string& name) {
  if (HasTheirName(name)) return true;
  const absl::StatusOr<AdminChannel> channel = OpenAdminChannel(path, kPatienceMs);
  // One that may not be opened is known by its name: root may.
  if (absl::IsPermissionDenied(channel.status()))
    return absl::StrContains(name, "admin") || absl::StrContains(name, "monitor");
  // Clients' sockets are of another kind, and gRPC would try them again and again.
  if (!channel.ok() || !absl::IsInvalidArgument(os::ConnectLocal(path, kPatienceMs).status()))
    return false;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(kPatienceMs));
  v1::StatusReply reply;
  return v1::Admin::NewStub(channel->channel)->Status(&context, v1::StatusRequest(), &reply).ok();
}

std::vector<std::string> OperatorsSocketsIn(const std::string& folder) {
  std::error_code error;
  const fs::path top = fs::canonical(folder, error);
  std::set<std::string> found;
  if (error || !fs::is_directory(top, error)) return {};
  for (const std::string& admin :
       {std::string(kServiceAdminSocket), AdminNameOf(DefaultLocalName())}) {
    if (Contains(top, fs::path(admin).parent_path())) found.insert(admin);
  }
  size_t seen = 0;
  for (auto it = fs::recursive_directory_iterator(
           top, fs::directory_options::skip_permission_denied, error);
       !error && it != fs::recursive_directory_iterator() && seen < kMostEntries;
       it.increment(error), ++seen) {
    if (it.depth() >= kDeepest) it.disable_recursion_pending();
    std::error_code gone;
    const fs::file_status status = it->symlink_status(gone);
    const std::string name = it->path().filename();
    if (fs::is_socket(status) ? IsOperatorsSocket(it->path(), name)
                              : HasTheirName(name) && !fs::is_directory(status)) {
      found.insert(it->path());
    }
  }
  return {found.begin(), found.end()};
}

std::string OperatorsSocketBeside(const std::string& client_socket) {
  std::set<std::string> found;
  std::vector<fs::path> folders = {fs::path(client_socket).parent_path()};
  const std::string old = OldClientNameOf(client_socket);
  if (!old.empty()) folders.push_back(fs::path(old).parent_path());
  for (const fs::path& folder : folders) {
    const std::vector<std::string> there = OperatorsSocketsIn(folder);
    found.insert(there.begin(), there.end());
  }
  found.erase(client_socket);
  if (found.empty()) return "";
  return absl::StrCat(absl::StrJoin(found, ", "),
                      found.size() == 1 ? " is an operators' socket" : " are operators' sockets",
                      " in a folder that containers mount for ", client_socket,
                      ": root in such a container administers the daemon");
}

}  // namespace sluice::ctl
