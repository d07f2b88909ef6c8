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
  if (!state_->started) state_->started = StartThread(name_, [state = state_] { Run(state); });
  return state_->started;
}

void JobThread::Run(const std::shared_ptr<State>& state) {
  const auto has_work = [](State* s) ABSL_EXCLUSIVE_LOCKS_REQUIRED(s->mu) {
    return !s->waiting.empty() || s->closed;
  };
  while (true) {
    Job job;
    {
      absl::MutexLock lock(&state->mu);
      state->mu.Await(absl::Condition(+has_work, state.get()));
      if (state->waiting.empty()) return;
      job = std::move(state->waiting.front());
      state->waiting.pop_front();
    }
    job();
  }
}

}  // namespace sluice
