// SPDX-License-Identifier: Apache-2.0
#include "client_icd/session/job_thread.h"

#include <memory>
#include <utility>

#include "broker/os/threads.h"
#include "client_icd/session/command_stream.h"

namespace sluice::client {

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

bool JobThread::Ready() {
  if (inert_.load(std::memory_order_relaxed)) return true;
  absl::MutexLock lock(&state_->mu);
  return StartLocked(state_);
}

bool JobThread::StartLocked(const std::shared_ptr<State>& state) {
  if (!state->started) state->started = os::StartThread(state->name, [state] { Run(state); });
  return state->started;
}

// The job that the thread has in hand. Not on its stack, which ExitThread leaves as it is.
struct JobThread::InHand {
  const std::shared_ptr<State> state;
  Job job;
};

// By a job, or because it is closed and has nothing left. The rest of that job goes on the next
// thread: Windows calls this with a lock that starting threads take beside the loader's, and what a
// job holds may need the loader's to go.
void JobThread::ThreadEnded(void* argument) {
  const std::unique_ptr<InHand> in_hand(static_cast<InHand*>(argument));
  const std::shared_ptr<State>& state = in_hand->state;
  absl::MutexLock lock(&state->mu);
  state->started = false;
  if (in_hand->job != nullptr) state->waiting.push_front([job = std::move(in_hand->job)] {});
  if (!state->waiting.empty()) StartLocked(state);
}

void JobThread::Run(const std::shared_ptr<State>& state) {
  const auto has_work = [](State* s) ABSL_EXCLUSIVE_LOCKS_REQUIRED(s->mu) {
    return !s->waiting.empty() || s->closed;
  };
  auto* const in_hand = new InHand{state, nullptr};  // ThreadEnded's.
  os::AtThreadEnd(&ThreadEnded, in_hand);
  while (true) {
    {
      absl::MutexLock lock(&state->mu);
      state->mu.Await(absl::Condition(+has_work, state.get()));
      if (state->waiting.empty()) return;
      in_hand->job = std::move(state->waiting.front());
      state->waiting.pop_front();
    }
    in_hand->job();
    // This is no thread of the application's: what the job kept goes as where replies are handled.
    const CommandStream::Handling handling;
    in_hand->job = nullptr;
  }
}

}  // namespace sluice::client
