// SPDX-License-Identifier: Apache-2.0
#include "broker/resources/service.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "broker/loop_queue.h"
#include "broker/resources/conversion.h"
#include "broker/resources/listener.h"
#include "proto/resources.grpc.pb.h"

namespace sluice::broker {
namespace {

constexpr int kMaxRequestBytes = 16 * 1024;
constexpr int kMaxMetadataBytes = 4 * 1024;
// Of one connection: every acquire that waits and every watch is one.
constexpr int kMaxStreams = 512;
constexpr size_t kMaxMemoryBytes = size_t{64} << 20;
// A Watch beyond the limit waits this long for room. The client may have closed others that still
// count, since gRPC tells of a cancelled call on another thread than of a new one.
constexpr int kRoomMs = 1'000;

// So many watches are told of new states at once; then other calls have their turn.
constexpr size_t kTellAtOnce = 32;

grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

grpc::Status ConnectionGone() {
  return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the connection has ended");
}

// Why a call was not posted.
grpc::Status NotPosted(LoopQueue::Posted posted) {
  if (posted == LoopQueue::Posted::kClosed) return ConnectionGone();
  return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                      "too many calls wait for the daemon; try again when some have been answered");
}

// One unary call. Finished once, by whoever has the answer; deletes itself afterwards.
class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  explicit UnaryCall(std::function<void()> on_cancel = nullptr)
      : on_cancel_(std::move(on_cancel)) {}

  void OnCancel() override {
    if (on_cancel_) on_cancel_();
  }
  void OnDone() override { delete this; }

 private:
  const std::function<void()> on_cancel_;
};

// One Watch. The latest state is written whenever the one before has gone out: a reader that is
// slow costs one message, not a queue. Thread-safe: states come on the loop thread, OnWriteDone on
// gRPC's.
class WatchCall final : public grpc::ServerWriteReactor<v1::ResourceState> {
 public:
  explicit WatchCall(std::function<void()> on_cancel) : on_cancel_(std::move(on_cancel)) {}

  // With `last`, the stream ends once it is written.
  void Send(const ResourceStateView& state, bool last) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (ending_ || finished_) return;
    ending_ = last;
    next_ = state;
    has_next_ = true;
    if (!writing_) WriteNextLocked();
  }

  // Ends the stream without a state. Only the loop thread ends a watch, and no Send follows.
  void End(const grpc::Status& status) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      absl::MutexLock lock(&mutex_);
      if (std::exchange(finished_, true)) return;
    }
    Finish(status);  // After which OnDone may have deleted this.
  }

  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    if (finished_) return;
    if (ok && has_next_) return WriteNextLocked();
    if (!ending_) return;  // Broken if not `ok`: OnCancel comes.
    finished_ = true;
    Finish(grpc::Status::OK);  // This lives until OnWriteDone has returned.
  }
  void OnCancel() override { on_cancel_(); }
  void OnDone() override { delete this; }

 private:
  void WriteNextLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    has_next_ = false;
    writing_ = true;
    FillState(next_, &message_);
    StartWrite(&message_);
  }

  const std::function<void()> on_cancel_;
  absl::Mutex mutex_;
  v1::ResourceState message_ ABSL_GUARDED_BY(mutex_);  // Being written.
  ResourceStateView next_ ABSL_GUARDED_BY(mutex_);
  bool has_next_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

class ResourceService final : public v1::Resources::CallbackService {
 public:
  using Context = grpc::CallbackServerContext;
  using Unary = grpc::ServerUnaryReactor;

  ResourceService(EventLoop* loop, ResourceHub* hub, ResourceListener* listener)
      : loop_(loop), hub_(hub), listener_(listener), queue_(loop) {
    hub_->SetOnUntold([this] { TellSoon(); });
  }

  void Stop() {
    queue_.CloseAndRun();
    while (!waiting_watches_.empty()) RetryWatch(waiting_watches_.begin(), false);
    hub_->Stop();  // Ends what waits.
    hub_->SetOnUntold(nullptr);
  }

  Unary* Create(Context* context, const v1::CreateResourceRequest* request,
                v1::CreateResourceReply* reply) override {
    auto* call = new UnaryCall;
    return OnLoop(context, call, [this, call, request, reply](uint64_t connection) {
      hub_->Create(connection, ReadCreate(*request),
                   [this, call, connection, reply](absl::StatusOr<CreatedResource> created) {
                     call->Finish(Answer(connection, created, reply));
                   });
    });
  }

  Unary* Import(Context* context, const v1::ImportResourceRequest* request,
                v1::CreateResourceReply* reply) override {
    auto* call = new UnaryCall;
    return OnLoop(context, call, [this, call, request, reply](uint64_t connection) {
      hub_->Import(connection, request->token(), ReadImport(*request),
                   [this, call, connection, reply](absl::StatusOr<CreatedResource> created) {
                     call->Finish(Answer(connection, created, reply));
                   });
    });
  }

  Unary* Export(Context* context, const v1::ExportResourceRequest* request,
                v1::ExportResourceReply* reply) override {
    return Simple(context, [this, request, reply](uint64_t connection) {
      const absl::StatusOr<ResourceAccess> access = ReadAccess(request->access());
      if (!access.ok()) return ToGrpc(access.status());
      const absl::StatusOr<uint32_t> count =
          hub_->Export(connection, request->capability(), *access, request->token());
      if (count.ok()) reply->set_descriptor_count(*count);
      return ToGrpc(count.status());
    });
  }

  Unary* Acquire(Context* context, const v1::AcquireResourceRequest* request,
                 v1::AcquireResourceReply* reply) override {
    // A cancel without a connection does not reach the loop, either.
    const uint64_t caller = listener_->ConnectionOf(*context);
    if (caller == 0) return FailWithoutConnection(new UnaryCall);
    auto turn = std::make_shared<Turn>();
    auto* call = new UnaryCall(
        [this, turn, caller] { queue_.Post(caller, [this, turn] { GiveUp(*turn); }); });
    return OnLoop(context, call, [this, call, turn, request, reply](uint64_t connection) {
      const absl::StatusOr<ResourceAccess> access = ReadAccess(request->access());
      if (!access.ok()) return call->Finish(ToGrpc(access.status()));
      if (turn->given_up) return call->Finish(grpc::Status::CANCELLED);
      turn->connection = connection;
      turn->id = request->hold_id();
      hub_->Acquire(connection, request->hold_id(), request->capability(), *access,
                    request->timeout_ms(),
                    [call, reply, turn](absl::StatusOr<ResourceGrant> grant) {
                      if (grant.ok()) {
                        FillGrant(*grant, reply);
                        turn->granted = turn->id;
                      }
                      turn->id = 0;
                      call->Finish(ToGrpc(grant.status()));
                    });
    });
  }

  Unary* Release(Context* context, const v1::ReleaseResourceRequest* request,
                 v1::ReleaseResourceReply* reply) override {
    return Simple(context, [this, request, reply](uint64_t connection) {
      const absl::StatusOr<ResourceTurns::Contents> contents = ReadContents(*request);
      if (!contents.ok()) return ToGrpc(contents.status());
      const absl::StatusOr<uint64_t> generation =
          hub_->Release(connection, request->hold_id(), *contents);
      if (generation.ok()) reply->set_generation(*generation);
      return ToGrpc(generation.status());
    });
  }

  Unary* Destroy(Context* context, const v1::DestroyResourceRequest* request,
                 v1::DestroyResourceReply*) override {
    return Simple(context, [this, request](uint64_t) {
      return ToGrpc(hub_->Destroy(request->capability()));
    });
  }

  Unary* Describe(Context* context, const v1::DescribeResourceRequest* request,
                  v1::ResourceDescription* reply) override {
    return Simple(context, [this, request, reply](uint64_t connection) {
      const absl::StatusOr<ResourceView> view = hub_->Describe(connection, request->capability());
      if (view.ok()) FillDescription(*view, hub_->registry().StateOf(view->id), reply);
      return ToGrpc(view.status());
    });
  }

  grpc::ServerWriteReactor<v1::ResourceState>* Watch(
      Context* context, const v1::WatchResourceRequest* request) override {
    const uint64_t connection = listener_->ConnectionOf(*context);
    if (connection == 0) {
      auto* refused = new WatchCall([] {});
      refused->End(ConnectionGone());
      return refused;
    }
    listener_->Prove(context);
    auto turn = std::make_shared<Turn>();
    // The reactor outlives the task: gRPC waits for the Finish that only End and Send bring.
    auto* call = new WatchCall(
        [this, turn, connection] { queue_.Post(connection, [this, turn] { StopWatch(*turn); }); });
    turn->connection = connection;
    const LoopQueue::Posted posted = queue_.PostCall(connection, [this, call, turn, request] {
      StartWatch({call, turn, request->capability()}, true);
    });
    if (posted != LoopQueue::Posted::kYes) call->End(NotPosted(posted));
    return call;
  }

 private:
  // The state of a waiting call, needed if its caller gives up. Loop thread only.
  struct Turn {
    uint64_t connection = 0;
    uint64_t id = 0;             // Of the hold while it waits; of the watch.
    uint64_t granted = 0;        // The hold once it is one.
    WatchCall* watch = nullptr;  // While the registry calls it.
    bool given_up = false;
    uint64_t waits = 0;  // Its place in waiting_watches_.
  };

  // A Watch for which there is no room.
  struct WaitingWatch {
    WatchCall* call = nullptr;
    std::shared_ptr<Turn> turn;
    std::string capability;
    EventLoop::TimerId timer = 0;
  };
  // By connection, in the order in which they came.
  using WaitingWatches = std::map<std::pair<uint64_t, uint64_t>, WaitingWatch>;
  static constexpr uint64_t kNobody = 0;  // No connection: what the service does for all.

  // Answered here: a caller without a connection costs the loop thread nothing.
  static Unary* FailWithoutConnection(UnaryCall* call) {
    call->Finish(ConnectionGone());
    return call;
  }

  // `work(connection)` on the loop thread; it finishes the call, then or later.
  template <typename Work>
  Unary* OnLoop(Context* context, UnaryCall* call, Work work) {
    const uint64_t connection = listener_->ConnectionOf(*context);
    if (connection == 0) return FailWithoutConnection(call);
    listener_->Prove(context);
    const auto task = [this, call, connection, work = std::move(work)] {
      if (!hub_->IsConnected(connection)) return call->Finish(ConnectionGone());
      work(connection);
    };
    const LoopQueue::Posted posted = queue_.PostCall(connection, task);
    if (posted != LoopQueue::Posted::kYes) call->Finish(NotPosted(posted));
    return call;
  }

  // The same for a call whose answer is there at once.
  template <typename Work>
  Unary* Simple(Context* context, Work work) {
    auto* call = new UnaryCall;
    return OnLoop(context, call, [call, work = std::move(work)](uint64_t connection) {
      call->Finish(work(connection));
    });
  }

  void GiveUp(Turn& turn) {
    turn.given_up = true;
    if (turn.id != 0) hub_->Cancel(turn.connection, turn.id);
    // The caller never heard of the grant: it has written nothing, and will not signal the end of
    // its work (texture_turns.h), so there is no new generation. Its own release may have come
    // before the acquire, since gRPC hands calls of one connection to several threads. If it came
    // after, this finds nothing.
    if (turn.granted != 0) {
      (void)hub_->Release(turn.connection, turn.granted, ResourceTurns::Contents::kUntouched);
    }
  }

  void StartWatch(WaitingWatch watch, bool may_wait) {
    const std::shared_ptr<Turn>& turn = watch.turn;
    WatchCall* const call = watch.call;
    if (!hub_->IsConnected(turn->connection)) return call->End(ConnectionGone());
    if (turn->given_up) return call->End(grpc::Status::CANCELLED);
    const absl::StatusOr<uint64_t> id =
        hub_->Watch(turn->connection, watch.capability,
                    [call, turn](const ResourceStateView& state, bool ended) {
                      if (ended) turn->watch = nullptr;
                      if (ended && !state.destroyed) return call->End(ConnectionGone());
                      call->Send(state, ended);
                    });
    if (may_wait && absl::IsResourceExhausted(id.status())) {
      turn->waits = ++last_place_;
      const std::pair<uint64_t, uint64_t> place = {turn->connection, turn->waits};
      watch.timer = loop_->AddTimer(
          kRoomMs, [this, place] { RetryWatch(waiting_watches_.find(place), false); });
      waiting_watches_.emplace(place, std::move(watch));
      return;
    }
    if (!id.ok()) return call->End(ToGrpc(id.status()));
    turn->watch = call;
    turn->id = *id;
  }

  // A change that thousands watch must not delay calls that have nothing to do with it.
  void TellSoon() {
    if (told_ < kTellAtOnce) told_ += hub_->TellWatches(kTellAtOnce - told_);
    if (!telling_) telling_ = queue_.Post(kNobody, [this] { TellSome(); });
  }
  void TellSome() {
    const bool had_told = std::exchange(told_, 0) != 0;
    told_ = hub_->TellWatches(kTellAtOnce);
    telling_ = (had_told || told_ != 0) && queue_.Post(kNobody, [this] { TellSome(); });
  }

  void RetryWatch(WaitingWatches::iterator place, bool may_wait) {
    WaitingWatch watch = std::move(place->second);
    waiting_watches_.erase(place);
    loop_->CancelTimer(&watch.timer);
    watch.turn->waits = 0;
    StartWatch(std::move(watch), may_wait);
  }

  void StopWatch(Turn& turn) {
    turn.given_up = true;
    if (turn.waits != 0) {
      return RetryWatch(waiting_watches_.find({turn.connection, turn.waits}), false);
    }
    if (turn.watch == nullptr) return;
    WatchCall* const call = std::exchange(turn.watch, nullptr);
    hub_->Unwatch(turn.id);  // Nothing is sent after this.
    call->End(grpc::Status::CANCELLED);
    // There is room for one more.
    const auto next = waiting_watches_.lower_bound({turn.connection, 0});
    if (next != waiting_watches_.end() && next->first.first == turn.connection) {
      RetryWatch(next, true);
    }
  }

  grpc::Status Answer(uint64_t connection, const absl::StatusOr<CreatedResource>& created,
                      v1::CreateResourceReply* reply) {
    if (!created.ok()) return ToGrpc(created.status());
    reply->set_read_capability(created->read.Encode());
    reply->set_write_capability(created->write.Encode());
    const auto view = hub_->Describe(connection, reply->write_capability());
    if (view.ok()) {
      FillDescription(*view, hub_->registry().StateOf(view->id), reply->mutable_description());
    }
    return ToGrpc(view.status());
  }

  EventLoop* const loop_;
  ResourceHub* const hub_;
  ResourceListener* const listener_;
  // Loop thread only.
  WaitingWatches waiting_watches_;
  uint64_t last_place_ = 0;
  size_t told_ = 0;       // Watches, since the last TellSome began.
  bool telling_ = false;  // TellSome will be called.
  LoopQueue queue_;
};

class GrpcResourceServer final : public ResourceServer {
 public:
  GrpcResourceServer(EventLoop* loop, ResourceHub* hub)
      : hub_(hub), listener_(ResourceListener::Create()), service_(loop, hub, listener_.get()) {}

  ~GrpcResourceServer() override {
    service_.Stop();
    hub_->SetStreams(nullptr);
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

  absl::Status Build() {
    grpc::ServerBuilder builder;
    grpc::ResourceQuota quota;
    quota.Resize(kMaxMemoryBytes);
    builder.SetResourceQuota(quota);
    builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreams);
    builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
    // A ping beyond the allowed strikes ends the connection. While the peer takes no bytes, gRPC
    // only notes that for each further ping, at some 4 KiB outside its quota. Without strikes it
    // stops reading at 10,000 unsent answers.
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
    builder.RegisterService(&service_);
    absl::StatusOr<std::unique_ptr<grpc::Server>> server = listener_->Start(&builder);
    if (!server.ok()) return server.status();
    server_ = *std::move(server);
    hub_->SetStreams(listener_.get());
    return absl::OkStatus();
  }

 private:
  ResourceHub* const hub_;
  const std::unique_ptr<ResourceListener> listener_;
  ResourceService service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ResourceServer>> ResourceServer::Start(EventLoop* loop,
                                                                      ResourceHub* hub) {
  auto server = std::make_unique<GrpcResourceServer>(loop, hub);
  if (absl::Status built = server->Build(); !built.ok()) return built;
  return std::unique_ptr<ResourceServer>(std::move(server));
}

}  // namespace sluice::broker
