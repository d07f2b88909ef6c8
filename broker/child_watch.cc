// SPDX-License-Identifier: Apache-2.0
#include "broker/child_watch.h"

#include <optional>
#include <utility>

namespace sluice {
namespace {

constexpr int64_t kRetryMs = 50;

}  // namespace

void ChildWatch::Start(ChildProcess* process, std::function<void(const ExitStatus&)> on_exit) {
  Stop();
  process_ = process;
  on_exit_ = std::move(on_exit);
  watch_ = loop_->Watch(process->pidfd(), [this] { OnEnded(); });
}

void ChildWatch::Stop() {
  loop_->Unwatch(&watch_);
  loop_->CancelTimer(&retry_timer_);
}

void ChildWatch::OnEnded() {
  // Before the reaping closes the descriptor, and because it stays readable while a tracer holds
  // on.
  loop_->Unwatch(&watch_);
  process_->KillGroup();
  const std::optional<ExitStatus> status = process_->TryReap();
  if (!status.has_value()) {
    retry_timer_ = loop_->AddTimer(kRetryMs, [this] {
      retry_timer_ = 0;
      OnEnded();
    });
    return;
  }
  const auto on_exit = std::exchange(on_exit_, nullptr);
  on_exit(*status);  // `this` may be gone afterwards.
}

}  // namespace sluice
