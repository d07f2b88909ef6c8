// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/linux/clients_folder.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <filesystem>
#include <system_error>
#include <vector>

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

// One that answers as they do. One that may not be opened is known by its name: root may.
bool IsOperators(const fs::path& path) {
  const absl::StatusOr<AdminChannel> channel = OpenAdminChannel(path, kPatienceMs);
  const std::string name = path.filename();
  if (absl::IsPermissionDenied(channel.status())) {
    return absl::StrContains(name, "admin") || absl::StrContains(name, "monitor");
  }
  // Clients' sockets are of another kind, and gRPC would try them again and again.
  if (!channel.ok() || !absl::IsInvalidArgument(os::ConnectLocal(path, kPatienceMs).status()))
    return false;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(kPatienceMs));
  v1::StatusReply reply;
  return v1::Admin::NewStub(channel->channel)->Status(&context, v1::StatusRequest(), &reply).ok();
}

}  // namespace

std::string OperatorsSocketBeside(const std::string& client_socket) {
  std::vector<fs::path> folders = {fs::path(client_socket).parent_path()};
  const std::string old = OldClientNameOf(client_socket);
  if (!old.empty()) folders.push_back(fs::path(old).parent_path());
  std::vector<std::string> found;
  for (const fs::path& folder : folders) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      std::error_code gone;
      if (entry.path() == client_socket || !fs::is_socket(entry.symlink_status(gone))) continue;
      if (IsOperators(entry.path())) found.push_back(entry.path());
    }
  }
  if (found.empty()) return "";
  return absl::StrCat(absl::StrJoin(found, ", "),
                      found.size() == 1 ? " is an operators' socket" : " are operators' sockets",
                      " in a folder that containers mount for ", client_socket,
                      ": root in such a container administers the daemon");
}

}  // namespace sluice::ctl
