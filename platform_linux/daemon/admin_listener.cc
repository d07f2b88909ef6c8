// SPDX-License-Identifier: Apache-2.0
#include "broker/admin_listener.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/instance.h"

namespace sluice {
namespace {

class UnixSocketListener final : public AdminListener {
 public:
  explicit UnixSocketListener(std::string path) : path_(std::move(path)) {}
  ~UnixSocketListener() override {
    if (started_) RemoveSocketFile(path_);
  }

  absl::StatusOr<std::unique_ptr<grpc::Server>> Start(grpc::ServerBuilder* builder) override {
    int port = 0;
    builder->AddListeningPort("unix:" + path_, grpc::InsecureServerCredentials(), &port);
    // The socket is made inside; with this mask never, not for a moment, with a wider mode than
    // 0600.
    const mode_t before = ::umask(0177);
    std::unique_ptr<grpc::Server> server = builder->BuildAndStart();
    ::umask(before);
    if (server == nullptr || port == 0) {
      return absl::UnavailableError(absl::StrCat("cannot listen on the admin socket ", path_));
    }
    started_ = true;
    return server;
  }

  grpc::Status Admit(grpc::ServerContext*) override { return grpc::Status::OK; }

 private:
  const std::string path_;
  bool started_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<AdminListener>> AdminListener::Create(EventLoop*,
                                                                     const std::string& name) {
  // Only who can open the socket can ask.
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  if (absl::Status made = MakeParentDirectory(name); !made.ok()) return made;
  if (absl::Status removed = RemoveStaleSocket(name); !removed.ok()) return removed;
  return std::make_unique<UnixSocketListener>(name);
}

}  // namespace sluice
