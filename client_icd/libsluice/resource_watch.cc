// SPDX-License-Identifier: Apache-2.0
#include "client_icd/libsluice/resource_watch.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/os/lasting_thread.h"

namespace sluice::client {
namespace {

// A cancelled call ends at once, unless gRPC has found no thread to say so.
constexpr absl::Duration kToLetGo = absl::Seconds(5);

}  // namespace

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  // Never the service's own: gRPC for Windows says so of a connection that was reset.
  if (status.error_code() == grpc::StatusCode::UNKNOWN) {
    return absl::UnavailableError(absl::StrCat("the daemon is gone: ", status.error_message()));
  }
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

absl::StatusOr<v1::ResourceState> WatchedState::TakeLocked() {
  if (news_) {
    news_ = false;
    return latest_;
  }
  if (!done_) return absl::DeadlineExceededError("nothing has changed in time");
  if (end_.ok()) return absl::AbortedError("the resource was destroyed");
  return end_;
}

absl::Status WatchedState::FirstLocked() {
  if (news_) return absl::OkStatus();
  return done_ ? end_ : absl::DeadlineExceededError("the daemon does not answer");
}

// gRPC's until OnDone.
class GrpcWatch::Stream final : public WatchedState,
                                public grpc::ClientReadReactor<v1::ResourceState> {
 public:
  Stream(const ResourceChannel* channel, v1::WatchResourceRequest request)
      : channel_(channel), request_(std::move(request)) {
    channel_->Prepare(&context_);
  }

  void Start(v1::Resources::Stub* stub) {
    stub->async()->Watch(&context_, &request_, this);
    StartCall();
  }

  void Cancel() { context_.TryCancel(); }

  // True once gRPC is done with it.
  bool WaitForEnd(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(&done_), timeout);
  }

  absl::StatusOr<v1::ResourceState> Next(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    WaitForNewsLocked(timeout);
    return TakeLocked();
  }

  absl::Status WaitForFirst(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    WaitForNewsLocked(timeout);
    return FirstLocked();
  }

  // Nothing is read from who is not the daemon.
  void OnReadInitialMetadataDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_) {
    if (!ok) return;  // OnDone follows.
    const grpc::Status checked = channel_->Check(context_, grpc::Status::OK);
    if (checked.ok()) return StartRead(&incoming_);
    {
      absl::MutexLock lock(&mutex_);
      stranger_ = checked;
    }
    context_.TryCancel();
  }

  void OnReadDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_) {
    if (!ok) return;  // OnDone follows.
    {
      absl::MutexLock lock(&mutex_);
      latest_ = incoming_;
      news_ = true;
    }
    StartRead(&incoming_);
  }

  void OnDone(const grpc::Status& status) override ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    end_ = FromGrpc(stranger_.ok() ? channel_->Check(context_, status) : stranger_);
    done_ = true;
  }

 private:
  void WaitForNewsLocked(absl::Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto something = [this]()
                               ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return news_ || done_; };
    mutex_.AwaitWithTimeout(absl::Condition(&something), timeout);
  }

  const ResourceChannel* const channel_;
  grpc::ClientContext context_;
  const v1::WatchResourceRequest request_;
  v1::ResourceState incoming_;                     // gRPC's while it reads.
  grpc::Status stranger_ ABSL_GUARDED_BY(mutex_);  // Not OK: it is not the daemon that answers.
};

GrpcWatch::GrpcWatch(v1::Resources::Stub* stub, std::shared_ptr<const ResourceChannel> channel,
                     v1::WatchResourceRequest request)
    : channel_(std::move(channel)),
      stream_(std::make_unique<Stream>(channel_.get(), std::move(request))) {
  os::RunWhereIoLasts([this, stub] { stream_->Start(stub); });
}

GrpcWatch::~GrpcWatch() {
  Cancel();
  if (stream_->WaitForEnd(kToLetGo)) return;
  // Not for OnDone to delete: it would take the channel down on a thread that this waits for.
  static_cast<void>(new auto(channel_));
  static_cast<void>(stream_.release());
}

void GrpcWatch::Cancel() {
  os::RunWhereIoLasts([this] { stream_->Cancel(); });
}

absl::StatusOr<v1::ResourceState> GrpcWatch::Next(uint32_t timeout_ms) {
  return stream_->Next(absl::Milliseconds(timeout_ms));
}

absl::Status GrpcWatch::WaitForFirst(absl::Duration timeout) {
  return stream_->WaitForFirst(timeout);
}

}  // namespace sluice::client
