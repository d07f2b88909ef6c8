// SPDX-License-Identifier: Apache-2.0
#include "broker/admin_listener.h"

#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/os/local_socket.h"
#include "proto/broker_messages.h"
#include "proto/network/loopback_tokens.h"

namespace sluice::broker {
namespace {

constexpr mode_t kOwnerOnly = 0600;
constexpr mode_t kMonitors = 0660;  // PipeOthers::kMonitors.
constexpr int kBacklog = 16;
constexpr size_t kMaxVisitors = 64;

class LoopbackListener final : public AdminListener {
 public:
  LoopbackListener(EventLoop* loop, os::UniqueFd pipe) : loop_(loop), pipe_(std::move(pipe)) {}

  ~LoopbackListener() override {
    loop_->Unwatch(&pipe_watch_);
    for (auto& [id, visitor] : visitors_) loop_->Unwatch(&visitor.watch);
  }

  absl::StatusOr<std::unique_ptr<grpc::Server>> Start(grpc::ServerBuilder* builder) override {
    builder->AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    // A thread's end cancels the I/O that it has begun, also another connection's and the next
    // accept (broker/os/lasting_thread.h): so no thread ends while the server lives.
    builder->SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MAX_POLLERS,
                                 std::numeric_limits<int>::max());
    std::unique_ptr<grpc::Server> server = builder->BuildAndStart();
    if (server == nullptr || port_ == 0) {
      return absl::UnavailableError("cannot listen on a port of loopback for operators");
    }
    pipe_watch_ = loop_->Watch(pipe_.get(), [this] { OnVisitor(); });
    if (pipe_watch_ == 0) return absl::InternalError("cannot watch the operators' pipe");
    return server;
  }

  grpc::Status Admit(grpc::ServerContext* context) override {
    const auto shown = context->client_metadata().find(wire::kLoopbackTokenKey);
    std::optional<wire::LoopbackTokens::Admitted> admitted;
    if (shown != context->client_metadata().end())
      admitted = tokens_.Admit({shown->second.data(), shown->second.size()}, context->peer());
    if (!admitted.has_value()) {
      return grpc::Status(
          grpc::StatusCode::UNAUTHENTICATED,
          "the admin pipe, or the monitor pipe, gives the token that is missing here");
    }
    if (!admitted->proof.empty())
      context->AddInitialMetadata(wire::kLoopbackProofKey, admitted->proof);
    return grpc::Status::OK;
  }

 private:
  struct Visitor {
    os::UniqueFd pipe;
    EventLoop::WatchId watch = 0;
  };

  // A peer that gets this far has passed the pipe's access list.
  void OnVisitor() {
    while (true) {
      absl::StatusOr<os::UniqueFd> pipe = os::AcceptLocal(pipe_.get());
      if (!pipe.ok()) return;
      if (visitors_.size() >= kMaxVisitors) continue;
      const uint64_t id = next_id_++;
      const absl::StatusOr<wire::LoopbackToken> token = tokens_.Issue(id);
      if (!token.ok()) continue;
      auto ticket = wire::MakeMessage<wire::AdminTicket>();
      ticket.port = static_cast<uint32_t>(port_);
      ticket.flags = wire::kTicketProves;
      std::memcpy(ticket.token, token->data(), token->size());
      const bool sent = os::SendMessage(pipe->get(), &ticket, sizeof(ticket)).ok();
      Visitor& visitor = visitors_[id];
      visitor.pipe = *std::move(pipe);
      // The visitor sends nothing: the pipe becomes ready by its end.
      visitor.watch = loop_->Watch(visitor.pipe.get(), [this, id] { Forget(id); });
      if (!sent || visitor.watch == 0) Forget(id);
    }
  }

  void Forget(uint64_t id) {
    tokens_.Revoke(id);
    const auto found = visitors_.find(id);
    loop_->Unwatch(&found->second.watch);
    visitors_.erase(found);
  }

  EventLoop* const loop_;
  const os::UniqueFd pipe_;
  int port_ = 0;
  EventLoop::WatchId pipe_watch_ = 0;
  uint64_t next_id_ = 1;
  std::map<uint64_t, Visitor> visitors_;
  wire::LoopbackTokens tokens_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<AdminListener>> AdminListener::Create(EventLoop* loop,
                                                                     const AdminSocket& socket) {
  const mode_t mode = socket.role == AdminRole::kMonitor ? kMonitors : kOwnerOnly;
  absl::StatusOr<os::UniqueFd> pipe = os::ListenLocal(socket.name, mode, kBacklog);
  if (!pipe.ok()) return pipe.status();
  return std::make_unique<LoopbackListener>(loop, *std::move(pipe));
}

}  // namespace sluice::broker
