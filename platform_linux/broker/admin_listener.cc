// SPDX-License-Identifier: Apache-2.0
#include "broker/admin_listener.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/base/log.h"
#include "broker/instance.h"
#include "broker/os/process.h"

namespace sluice::broker {
namespace {

class UnixSocketListener final : public AdminListener {
 public:
  explicit UnixSocketListener(AdminSocket socket) : socket_(std::move(socket)) {}
  ~UnixSocketListener() override {
    if (started_) RemoveSocketFile(socket_.name);
  }

  absl::StatusOr<std::unique_ptr<grpc::Server>> Start(grpc::ServerBuilder* builder) override {
    int port = 0;
    builder->AddListeningPort("unix:" + socket_.name, grpc::InsecureServerCredentials(), &port);
    // The socket is made inside; with this mask never, not for a moment, with a wider mode than
    // 0600.
    const mode_t before = ::umask(0177);
    std::unique_ptr<grpc::Server> server = builder->BuildAndStart();
    ::umask(before);
    if (server == nullptr || port == 0) {
      return absl::UnavailableError(
          absl::StrCat("cannot listen on the operators' socket ", socket_.name));
    }
    started_ = true;
    if (socket_.role == AdminRole::kMonitor) {
      if (absl::Status opened = OpenToGroup(); !opened.ok()) return opened;
    }
    return server;
  }

  grpc::Status Admit(grpc::ServerContext*) override { return grpc::Status::OK; }

 private:
  // A group that was asked for must be had; the one of packages need not be there.
  absl::Status OpenToGroup() const {
    const bool asked = !socket_.group.empty();
    if (!asked && !os::IsPrivileged()) return absl::OkStatus();
    const absl::StatusOr<gid_t> group = os::LookUpGroup(asked ? socket_.group : kMonitorGroup);
    absl::Status opened = group.status();
    if (opened.ok() && (::chown(socket_.name.c_str(), static_cast<uid_t>(-1), *group) != 0 ||
                        ::chmod(socket_.name.c_str(), 0660) != 0)) {
      opened = absl::ErrnoToStatus(errno, absl::StrCat("giving ", socket_.name, " to group ",
                                                       asked ? socket_.group : kMonitorGroup));
    }
    if (opened.ok() || asked) return opened;
    Log(LogLevel::kInfo, "broker", "the monitor socket is the daemon's own user's alone",
        {{"reason", std::string(opened.message())}});
    return absl::OkStatus();
  }

  const AdminSocket socket_;
  bool started_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<AdminListener>> AdminListener::Create(EventLoop*,
                                                                     const AdminSocket& socket) {
  // Only who can open the socket can ask.
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  if (absl::Status made = MakeParentDirectory(socket.name); !made.ok()) return made;
  if (absl::Status removed = RemoveStaleSocket(socket.name); !removed.ok()) return removed;
  return std::make_unique<UnixSocketListener>(socket);
}

}  // namespace sluice::broker
