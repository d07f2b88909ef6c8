// SPDX-License-Identifier: Apache-2.0
#include "client_icd/callbacks.h"

#include <utility>

#include "client_icd/threads.h"

namespace sluice {

Callbacks::~Callbacks() {
  if (inert_.load(std::memory_order_relaxed)) return;
  absl::MutexLock lock(&state_->mu);
  state_->closed = true;
}

void Callbacks::Add(Callback callback) {
  if (inert_.load(std::memory_order_relaxed)) return;
  absl::MutexLock lock(&state_->mu);
  state_->waiting.push_back(std::move(callback));
  if (state_->started) return;
  // With no thread to be had, the next callback tries again.
  state_->started = StartThread("sluice-callback", [state = state_] { Run(state); });
}

void Callbacks::Run(const std::shared_ptr<State>& state) {
  const auto has_work = [](State* s) ABSL_EXCLUSIVE_LOCKS_REQUIRED(s->mu) {
    return !s->waiting.empty() || s->closed;
  };
  while (true) {
    Callback callback;
    {
      absl::MutexLock lock(&state->mu);
      state->mu.Await(absl::Condition(+has_work, state.get()));
      if (state->waiting.empty()) return;
      callback = std::move(state->waiting.front());
      state->waiting.pop_front();
    }
    callback();
  }
}

}  // namespace sluice
