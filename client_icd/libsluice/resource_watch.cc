// SPDX-License-Identifier: Apache-2.0
#include "client_icd/libsluice/resource_watch.h"

#include "absl/time/time.h"
#include "broker/os/lasting_thread.h"

namespace sluice {

ResourceWatch::ResourceWatch(ResourceConnection* connection, const std::string& capability)
    : connection_(connection) {
  request_.set_capability(capability);
  connection_->Prepare(&context_);
  RunWhereIoLasts([this] {
    connection_->stub()->async()->Watch(&context_, &request_, this);
    StartCall();
  });
}

ResourceWatch::~ResourceWatch() {
  RunWhereIoLasts([this] { context_.TryCancel(); });
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&done_));
}

absl::StatusOr<v1::ResourceState> ResourceWatch::Next(uint32_t timeout_ms) {
  absl::MutexLock lock(&mutex_);
  const auto something = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return news_ || done_; };
  mutex_.AwaitWithTimeout(absl::Condition(&something), absl::Milliseconds(timeout_ms));
  if (news_) {
    news_ = false;
    return latest_;
  }
  if (!done_) return absl::DeadlineExceededError("nothing has changed in time");
  if (end_.ok()) return absl::AbortedError("the resource was destroyed");
  return end_;
}

// Nothing is read from who is not the daemon.
void ResourceWatch::OnReadInitialMetadataDone(bool ok) {
  if (!ok) return;  // OnDone follows.
  const grpc::Status checked = connection_->Check(context_, grpc::Status::OK);
  if (checked.ok()) return StartRead(&incoming_);
  {
    absl::MutexLock lock(&mutex_);
    stranger_ = checked;
  }
  context_.TryCancel();
}

void ResourceWatch::OnReadDone(bool ok) {
  if (!ok) return;  // OnDone follows.
  {
    absl::MutexLock lock(&mutex_);
    latest_ = incoming_;
    news_ = true;
  }
  StartRead(&incoming_);
}

void ResourceWatch::OnDone(const grpc::Status& status) {
  absl::MutexLock lock(&mutex_);
  end_ = FromGrpc(stranger_.ok() ? connection_->Check(context_, status) : stranger_);
  done_ = true;
}

}  // namespace sluice
