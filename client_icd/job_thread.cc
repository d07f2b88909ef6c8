// SPDX-License-Identifier: Apache-2.0
#include "client_icd/job_thread.h"

#include <utility>

#include "broker/os/threads.h"

namespace sluice {

JobThread::~JobThread() {
  if (inert_.load(std::memory_order_relaxed)) return;
  absl::MutexLock lock(&state_->mu);
  state_->closed = true;
}

bool JobThread::Add(Job job) {
  if (inert_.load(std::memory_order_relaxed)) return false;
  absl::MutexLock lock(&state_->mu);
  state_->waiting.push_back(std::move(job));
  return StartLocked(state_);
}

bool JobThread::StartLocked(const std::shared_ptr<State>& state) {
  if (!state->started) state->started = StartThread(state->name, [state] { Run(state); });
  return state->started;
}

// Says that there is no thread any more if a job ends it: a system's exit of a thread unwinds it.
class JobThread::ExitGuard {
 public:
  explicit ExitGuard(const std::shared_ptr<State>& state) : state_(state) {}
  ~ExitGuard() {
    if (state_ == nullptr) return;
    absl::MutexLock lock(&state_->mu);
    state_->started = false;
    if (!state_->waiting.empty()) StartLocked(state_);
  }
  ExitGuard(const ExitGuard&) = delete;
  ExitGuard& operator=(const ExitGuard&) = delete;
  void Dismiss() { state_ = nullptr; }

 private:
  std::shared_ptr<State> state_;
};

void JobThread::Run(const std::shared_ptr<State>& state) {
  const auto has_work = [](State* s) ABSL_EXCLUSIVE_LOCKS_REQUIRED(s->mu) {
    return !s->waiting.empty() || s->closed;
  };
  ExitGuard guard(state);
  while (true) {
    Job job;
    {
      absl::MutexLock lock(&state->mu);
      state->mu.Await(absl::Condition(+has_work, state.get()));
      if (state->waiting.empty()) return guard.Dismiss();
      job = std::move(state->waiting.front());
      state->waiting.pop_front();
    }
    job();
  }
}

}  // namespace sluice
