// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/pool/printing_turns.h"

#include <string>
#include <utility>

#include "broker/os/local_socket.h"
#include "broker/os/threads.h"
#include "daemon/worker/replies.h"
#include "daemon/worker/worker_process.h"

namespace sluice::worker {

absl::Status PrintingTurns::Start() {
  absl::StatusOr<os::UniqueFd> captured = CaptureStdout();
  if (!captured.ok()) return captured.status();
  read_end_ = *std::move(captured);
  // A kernel that prints more than the pipe holds must not wait for its own end to drain it.
  os::StartDetached([this] {
    while (os::WaitReadable(read_end_.get(), -1).ok()) Drain();
  });
  return absl::OkStatus();
}

void PrintingTurns::Drain() {
  absl::MutexLock lock(&mu_);
  DrainLocked();
}

void PrintingTurns::DrainLocked() {
  constexpr size_t kAtOnce = 16 * 1024;
  while (true) {
    const std::string text = ReadCaptured(read_end_.get(), kAtOnce);
    if (text.empty()) return;
    if (owner_ == nullptr) continue;  // Of a session that has ended, or of the driver itself.
    pb::Reply reply;
    reply.mutable_printed()->set_text(text);
    owner_->Send(reply, wire::Wake::kUrgent);
  }
}

void PrintingTurns::Ask(Replies* session, std::function<void()> run) {
  Runs runs;
  {
    absl::MutexLock lock(&mu_);
    waiting_.push_back({session, std::move(run)});
    runs = PassOn();
  }
  for (const auto& one : runs) one();
}

void PrintingTurns::End(Replies* session) {
  Runs runs;
  {
    absl::MutexLock lock(&mu_);
    if (session != owner_) return;  // It has been forgotten.
    DrainLocked();
    --running_;
    runs = PassOn();
  }
  for (const auto& one : runs) one();
}

void PrintingTurns::Forget(Replies* session) {
  Runs runs;
  {
    absl::MutexLock lock(&mu_);
    std::deque<Waiting> others;
    for (Waiting& one : waiting_) {
      if (one.session == session) {
        runs.push_back(std::move(one.run));
      } else {
        others.push_back(std::move(one));
      }
    }
    waiting_ = std::move(others);
    if (session == owner_) {
      DrainLocked();
      owner_ = nullptr;
      running_ = 0;
    }
    for (auto& run : PassOn()) runs.push_back(std::move(run));
  }
  for (const auto& one : runs) one();
}

PrintingTurns::Runs PrintingTurns::PassOn() {
  Runs runs;
  if (waiting_.empty()) return runs;
  if (running_ == 0 && waiting_.front().session != owner_) {
    DrainLocked();
    owner_ = waiting_.front().session;
  }
  while (!waiting_.empty() && waiting_.front().session == owner_) {
    runs.push_back(std::move(waiting_.front().run));
    waiting_.pop_front();
    ++running_;
  }
  return runs;
}

}  // namespace sluice::worker
