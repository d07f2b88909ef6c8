// SPDX-License-Identifier: Apache-2.0
#include "broker/resources/listener.h"

#include <grpcpp/server_posix.h>

#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "broker/os/local_socket.h"
#include "platform_linux/broker/stream_gate.h"
#include "proto/status_macros.h"

namespace sluice::broker {
namespace {

// gRPC names the peer of an attached socket "fd:N".
int SocketOf(const grpc::CallbackServerContext& context) {
  const std::string peer = context.peer();
  absl::string_view text = peer;
  int number = -1;
  if (!absl::ConsumePrefix(&text, "fd:") || !absl::SimpleAtoi(text, &number)) return -1;
  return number;
}

class AttachedSockets final : public ResourceListener {
 public:
  absl::StatusOr<std::unique_ptr<grpc::Server>> Start(grpc::ServerBuilder* builder) override {
    std::unique_ptr<grpc::Server> server = builder->BuildAndStart();
    if (server == nullptr) return absl::UnavailableError("cannot start the resource service");
    server_ = server.get();
    return server;
  }

  absl::StatusOr<Ends> Open(uint64_t connection) override {
    ASSIGN_OR_RETURN(auto outside, os::CreateStreamPair());
    ASSIGN_OR_RETURN(auto inside, os::CreateStreamPair());
    os::RefuseDescriptors(outside.first.get());
    Ends ends;
    ends.ours = os::DuplicateFd(outside.first.get());
    if (!ends.ours.valid()) return absl::ResourceExhaustedError("no more descriptors");
    if (gate_ == nullptr) {
      ASSIGN_OR_RETURN(gate_, StreamGate::Start());
    }
    ends.client = std::move(outside.second);
    {
      absl::MutexLock lock(&mutex_);
      by_socket_[inside.first.get()] = connection;
    }
    grpc::AddInsecureChannelFromFd(server_, inside.first.release());
    gate_->Add(std::move(outside.first), std::move(inside.second));
    return ends;
  }

  void Close(uint64_t connection) override {
    absl::MutexLock lock(&mutex_);
    for (auto it = by_socket_.begin(); it != by_socket_.end(); ++it) {
      if (it->second != connection) continue;
      by_socket_.erase(it);
      return;
    }
  }

  // It has no port that another could have.
  void Prove(grpc::CallbackServerContext*) override {}

  // gRPC keeps the socket as long as one of its calls lives, so its number is not another's.
  uint64_t ConnectionOf(const grpc::CallbackServerContext& context) override {
    const int socket = SocketOf(context);
    absl::MutexLock lock(&mutex_);
    const auto found = by_socket_.find(socket);
    return found == by_socket_.end() ? 0 : found->second;
  }

 private:
  std::unique_ptr<StreamGate> gate_;  // From the first connection on.
  grpc::Server* server_ = nullptr;    // The caller's, who ends it before this.
  absl::Mutex mutex_;
  std::map<int, uint64_t> by_socket_ ABSL_GUARDED_BY(mutex_);  // Numbers of gRPC's ends.
};

}  // namespace

std::unique_ptr<ResourceListener> ResourceListener::Create() {
  return std::make_unique<AttachedSockets>();
}

}  // namespace sluice::broker
