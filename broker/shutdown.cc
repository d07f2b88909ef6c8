// SPDX-License-Identifier: Apache-2.0
#include "broker/shutdown.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/base/log.h"
#include "broker/os/service.h"

namespace sluice::broker {
namespace {

// "At once": for a worker to tell its client why, and no more.
constexpr int64_t kNoticeMs = 200;
// For the system to end killed workers, which may have much memory to give back.
constexpr int64_t kKilledMs = 10'000;

}  // namespace

void Shutdown::Configure(const Config& config) {
  drain_timeout_ms_ = config.drain_timeout_ms;
  kill_grace_ms_ = config.kill_grace_ms;
}

void Shutdown::OnStopSignal() {
  // An operator's drain before this does not count: it may have no time limit.
  if (std::exchange(signalled_, true)) {
    Log(LogLevel::kWarning, "broker", "told to stop again: ending all sessions at once");
    return EndWorkers("the daemon was told to stop at once", std::min(kNoticeMs, kill_grace_ms_));
  }
  Drain(drain_timeout_ms_);
  if (drain_timeout_ms_ == 0) EndWorkers("the daemon is stopping", kill_grace_ms_);
}

void Shutdown::Drain(int64_t timeout_ms) {
  if (!opener_->draining()) {
    opener_->StartDraining();
    resources_->StartDraining();
    Log(LogLevel::kInfo, "broker", "draining: no new sessions",
        {{"sessions", workers_->count()}, {"timeout_ms", timeout_ms}});
    os::NotifyService(
        absl::StrCat("STOPPING=1\nSTATUS=Draining: ", workers_->count(), " sessions left"));
  }
  loop_->CancelTimer(&drain_timer_);
  if (timeout_ms > 0) {
    // The unit's own limit would kill the broker in the middle and leave the workers alone.
    const int64_t longest_ms = timeout_ms + kill_grace_ms_ + kKilledMs + kNoticeMs;
    os::NotifyService(absl::StrCat("EXTEND_TIMEOUT_USEC=", longest_ms * 1000));
    drain_timer_ = loop_->AddTimer(timeout_ms, [this] {
      drain_timer_ = 0;
      Log(LogLevel::kWarning, "broker", "drain timeout: ending the sessions that are left",
          {{"sessions", workers_->count()}});
      EndWorkers("the daemon is stopping", kill_grace_ms_);
    });
  }
  OnSessionEnded();
}

void Shutdown::EndWorkers(const char* reason, int64_t grace_ms) {
  workers_->EndAll(reason, grace_ms);
  loop_->CancelTimer(&give_up_timer_);
  give_up_timer_ = loop_->AddTimer(grace_ms + kKilledMs, [this] {
    give_up_timer_ = 0;
    workers_->GiveUp();
    loop_->Quit();
  });
  OnSessionEnded();
}

void Shutdown::OnSessionEnded() {
  if (opener_->draining() && workers_->count() == 0) loop_->Quit();
}

}  // namespace sluice::broker
