// SPDX-License-Identifier: Apache-2.0
#include "broker/children/child_watch.h"

#include <optional>
#include <utility>

#include "broker/base/log.h"

namespace sluice::broker {
namespace {

constexpr int64_t kRetryMs = 50;
// A killed process has its memory to give back.
constexpr int kKilledMs = 2'000;

}  // namespace

void KillAndReap(os::ChildProcess* process, const char* what) {
  if (!process->valid()) return;
  process->KillGroup();
  if (process->WaitAndReap(kKilledMs).has_value()) return;
  Log(LogLevel::kError, "broker",
      "a process does not end though it was killed; going on without it",
      {{"process", what}, {"pid", process->pid()}});
}

void ChildWatch::Start(os::ChildProcess* process,
                       std::function<void(const os::ExitStatus&)> on_exit) {
  thread_.Assert();
  Stop();
  process_ = process;
  on_exit_ = std::move(on_exit);
  watch_ = loop_->Watch(process->pidfd(), [this] { OnEnded(); });
}

void ChildWatch::Stop() {
  thread_.Assert();
  loop_->Unwatch(&watch_);
  loop_->CancelTimer(&retry_timer_);
}

void ChildWatch::OnEnded() {
  // Before the reaping closes the descriptor; and it would stay readable while a tracer holds the
  // child.
  loop_->Unwatch(&watch_);
  process_->KillGroup();
  const std::optional<os::ExitStatus> status = process_->TryReap();
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

}  // namespace sluice::broker
