// SPDX-License-Identifier: Apache-2.0
// RemoteTransport where only a thread of the driver's may call gRPC.
#include "absl/synchronization/notification.h"
#include "client_icd/remote/remote_channel.h"
#include "client_icd/remote/remote_transport.h"

namespace sluice::client {

// Opens the session on the thread that then serves it.
absl::Status RemoteTransport::StartNetworkThread(std::chrono::milliseconds timeout) {
  absl::Status opened;
  absl::Notification tried;
  {
    absl::MutexLock lock(&mu_);
    network_thread_runs_ = true;
  }
  const bool started = os::StartOnLastingThread([this, timeout, &opened, &tried] {
    opened = Open(timeout);
    tried.Notify();
    RunNetworkThread();
  });
  if (started) {
    tried.WaitForNotification();
    return opened;
  }
  absl::MutexLock lock(&mu_);
  network_thread_runs_ = false;
  network_thread_ends_ = true;
  return absl::ResourceExhaustedError("the system has no thread to give");
}

void RemoteTransport::RunNetworkThread() {
  while (!lost()) {
    Flush();
    ReadOn();
    PollOnce(After(kLookAgainNs));
  }
  {
    absl::MutexLock lock(&mu_);
    network_thread_ends_ = true;
  }
  if (!Abandoned() && GrpcTrouble() == nullptr) call_->context.TryCancel();
  EndCall();
  call_.reset();
  absl::MutexLock lock(&mu_);
  network_thread_runs_ = false;
  waiter_wake_.SignalAll();
}

void RemoteTransport::Push() {
  if (!has_network_thread_) return Flush();
  const bool to_write = outbox_.bytes() > 0 && !outbox_.writing();
  if (!to_write && !read_due_.load(std::memory_order_acquire)) return;
  absl::MutexLock lock(&mu_);
  KickLocked();
}

void RemoteTransport::SleepUntilNews(uint32_t ticket, bool background) {
  Push();
  absl::MutexLock lock(&mu_);
  if (background) {
    while (!SleepMayEnd(ticket)) background_wake_.Wait(&mu_);
    return;
  }
  waiter_sleeps_ = true;
  while (!SleepMayEnd(ticket)) waiter_wake_.Wait(&mu_);
  waiter_sleeps_ = false;
}

}  // namespace sluice::client
