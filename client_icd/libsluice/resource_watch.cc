// SPDX-License-Identifier: Apache-2.0
#include "client_icd/libsluice/resource_watch.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/os/lasting_thread.h"

namespace sluice {

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  // Never the service's own: gRPC for Windows says so of a connection that was reset.
  if (status.error_code() == grpc::StatusCode::UNKNOWN) {
    return absl::UnavailableError(absl::StrCat("the daemon is gone: ", status.error_message()));
  }
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

absl::StatusOr<v1::ResourceState> ResourceWatch::TakeLocked() {
  if (news_) {
    news_ = false;
    return latest_;
  }
  if (!done_) return absl::DeadlineExceededError("nothing has changed in time");
  if (end_.ok()) return absl::AbortedError("the resource was destroyed");
  return end_;
}

absl::Status ResourceWatch::FirstLocked() {
  if (news_) return absl::OkStatus();
  return done_ ? end_ : absl::DeadlineExceededError("the daemon does not answer");
}

GrpcWatch::GrpcWatch(v1::Resources::Stub* stub, const ResourceChannel* channel,
                     v1::WatchResourceRequest request)
    : channel_(channel), request_(std::move(request)) {
  channel_->Prepare(&context_);
  RunWhereIoLasts([this, stub] {
    stub->async()->Watch(&context_, &request_, this);
    StartCall();
  });
}

GrpcWatch::~GrpcWatch() {
  Cancel();
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&done_));
}

void GrpcWatch::Cancel() {
  RunWhereIoLasts([this] { context_.TryCancel(); });
}

void GrpcWatch::WaitForNewsLocked(absl::Duration timeout) {
  const auto something = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return news_ || done_; };
  mutex_.AwaitWithTimeout(absl::Condition(&something), timeout);
}

absl::StatusOr<v1::ResourceState> GrpcWatch::Next(uint32_t timeout_ms) {
  absl::MutexLock lock(&mutex_);
  WaitForNewsLocked(absl::Milliseconds(timeout_ms));
  return TakeLocked();
}

absl::Status GrpcWatch::WaitForFirst(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  WaitForNewsLocked(timeout);
  return FirstLocked();
}

// Nothing is read from who is not the daemon.
void GrpcWatch::OnReadInitialMetadataDone(bool ok) {
  if (!ok) return;  // OnDone follows.
  const grpc::Status checked = channel_->Check(context_, grpc::Status::OK);
  if (checked.ok()) return StartRead(&incoming_);
  {
    absl::MutexLock lock(&mutex_);
    stranger_ = checked;
  }
  context_.TryCancel();
}

void GrpcWatch::OnReadDone(bool ok) {
  if (!ok) return;  // OnDone follows.
  {
    absl::MutexLock lock(&mutex_);
    latest_ = incoming_;
    news_ = true;
  }
  StartRead(&incoming_);
}

void GrpcWatch::OnDone(const grpc::Status& status) {
  absl::MutexLock lock(&mutex_);
  end_ = FromGrpc(stranger_.ok() ? channel_->Check(context_, status) : stranger_);
  done_ = true;
}

}  // namespace sluice
