// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/core/native_watch.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/time/clock.h"

namespace sluice::client::sharing {

NativeWatch::NativeWatch(const char* thread, const char* reason, absl::Duration tick)
    : reason_(reason), state_(std::make_shared<State>(tick)), thread_(thread) {}

NativeWatch::~NativeWatch() {
  absl::MutexLock lock(&state_->mu);
  state_->closed = true;
}

std::shared_ptr<NativeWatch::Turn> NativeWatch::AddTurn(absl::Duration bound,
                                                        std::function<void()> give_up) {
  auto turn = std::make_shared<Turn>(state_, bound, std::move(give_up));
  absl::MutexLock lock(&state_->mu);
  turn->state_->mu.AssertHeld();  // The same.
  turn->QueueLocked(absl::Now());
  state_->turns.push_back(turn.get());
  if (!state_->watching) state_->watching = thread_.Add([state = state_] { Watch(state); });
  return turn;
}

void NativeWatch::Watch(const std::shared_ptr<State>& state) {
  bool was_idle = false;
  while (true) {
    std::vector<std::function<void()>> late;
    {
      absl::MutexLock lock(&state->mu);
      state->mu.AwaitWithTimeout(absl::Condition(&state->closed), state->tick);
      const bool idle = state->turns.empty();
      if (state->closed || (idle && was_idle)) {
        state->watching = false;
        return;
      }
      was_idle = idle;
      const absl::Time now = absl::Now();
      state->turns.remove_if([&](Turn* turn) {
        state->mu.AssertHeld();
        turn->state_->mu.AssertHeld();  // The same.
        if (!turn->IsLateLocked(now)) return false;
        if (turn->phase_ == Turn::Phase::kWaiting) ++state->stuck;
        turn->phase_ = Turn::Phase::kGivenUp;
        late.push_back(std::exchange(turn->give_up_, nullptr));
        return true;
      });
    }
    for (const std::function<void()>& give_up : late) give_up();
  }
}

NativeWatch::Turn::Turn(std::shared_ptr<State> state, absl::Duration bound,
                        std::function<void()> give_up)
    : state_(std::move(state)), bound_(bound), give_up_(std::move(give_up)) {}

NativeWatch::Turn::~Turn() { End(); }

void NativeWatch::Turn::QueueLocked(absl::Time now) {
  phase_ = Phase::kInLine;
  due_ = now + bound_ + state_->tick;
  moves_ = state_->moves;
}

void NativeWatch::Turn::Requeue() {
  absl::MutexLock lock(&state_->mu);
  if (phase_ != Phase::kGivenUp) QueueLocked(absl::Now());
}

bool NativeWatch::Turn::Start(absl::Time deadline) {
  absl::MutexLock lock(&state_->mu);
  ++state_->moves;
  if (phase_ == Phase::kGivenUp) return false;
  phase_ = Phase::kWorking;
  // A call with a bound of its own ends by itself at the deadline, and tells more.
  due_ = deadline + state_->tick;
  return true;
}

bool NativeWatch::Turn::BeginWait() {
  absl::MutexLock lock(&state_->mu);
  ++state_->moves;
  if (phase_ == Phase::kGivenUp) {
    ++state_->stuck;  // Once more.
    return false;
  }
  phase_ = Phase::kWaiting;
  return true;
}

bool NativeWatch::Turn::EndWait() {
  absl::MutexLock lock(&state_->mu);
  ++state_->moves;
  if (phase_ == Phase::kGivenUp) {
    --state_->stuck;
    return false;
  }
  phase_ = Phase::kWorking;
  return true;
}

bool NativeWatch::Turn::End() {
  absl::MutexLock lock(&state_->mu);
  if (phase_ == Phase::kGivenUp) return false;
  if (phase_ != Phase::kEnded) state_->turns.remove(this);
  phase_ = Phase::kEnded;
  return true;
}

bool NativeWatch::Turn::given_up() {
  absl::MutexLock lock(&state_->mu);
  return phase_ == Phase::kGivenUp;
}

bool NativeWatch::Turn::IsLateLocked(absl::Time now) {
  if (now < due_) return false;
  if (phase_ == Phase::kWaiting) return true;
  if (phase_ != Phase::kInLine) return false;
  const bool works = std::any_of(state_->turns.begin(), state_->turns.end(),
                                 [](const Turn* one) ABSL_EXCLUSIVE_LOCKS_REQUIRED(
                                     one->state_->mu) { return one->phase_ == Phase::kWorking; });
  if (state_->stuck > 0 || (moves_ == state_->moves && !works)) return true;
  QueueLocked(now);
  return false;
}

}  // namespace sluice::client::sharing
