// SPDX-License-Identifier: Apache-2.0
#include "client_icd/session/pending_releases.h"

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "broker/os/threads.h"
#include "client_icd/session/command_stream.h"

namespace sluice::client {

// Leaked: threads may still run while the process ends.
struct PendingReleases::State {
  absl::Mutex mu;
  // Those that began in another are not counted any more.
  int generation ABSL_GUARDED_BY(mu) = 0;
};

std::atomic<int> PendingReleases::under_way_{0};

PendingReleases::State& PendingReleases::Shared() {
  static State* const state = new State;
  return *state;
}

std::shared_ptr<void> PendingReleases::Begin() {
  State& state = Shared();
  absl::MutexLock lock(&state.mu);
  under_way_.fetch_add(1, std::memory_order_relaxed);
  return {&state, [generation = state.generation](void* shared) {
            State& ended = *static_cast<State*>(shared);
            absl::MutexLock ended_lock(&ended.mu);
            if (generation == ended.generation) under_way_.fetch_sub(1, std::memory_order_release);
          }};
}

void PendingReleases::AwaitAll(absl::Duration patience) {
  if (CommandStream::HandlesHere() || os::OtherThreadsWereEnded()) return;
  State& state = Shared();
  const auto none = [] { return under_way_.load(std::memory_order_relaxed) == 0; };
  absl::MutexLock lock(&state.mu);
  if (state.mu.AwaitWithTimeout(absl::Condition(&none), patience)) return;
  ++state.generation;
  under_way_.store(0, std::memory_order_relaxed);
}

}  // namespace sluice::client
