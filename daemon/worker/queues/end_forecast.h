// SPDX-License-Identifier: Apache-2.0
// When the driver's commands are likely to end, by how long they took lately: programs that run
// long kernels run the same ones again and again.
//
// A thread that waits for an end polls without sleep for a good while, as a driver in the
// application's own process does. A sleep ends some 60 us late, and a processor that has slept has
// cold caches, which cost a launch and its end 60 to 150 us (H100, kernels of 1 to 20 ms). After
// that it sleeps between looks, but for about when one of the last commands ended. The client
// sleeps meanwhile, and is woken shortly before such a time:
//
//   0 ........ kWithoutSleepNs ............ took - margin ....... took + margin ............
//     look       sleep 1/32 of the time         look                sleep 1/32 of the time
//
// Times are of MonotonicNs (proto/spin.h). Session thread only.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace sluice::worker {

class EndForecast {
 public:
  static constexpr int64_t kWithoutSleepNs = 10'000'000;
  static constexpr int64_t kAfterCommandNs = 1'000'000;
  static constexpr int64_t kShortestPauseNs = 10'000;
  static constexpr int64_t kLongestPauseNs = 2'000'000;

  // The driver has work now. Counts from the first such call, or the last end.
  void NoteWork(int64_t now) {
    if (since_ == 0) since_ = now;
  }
  // The client is at work: what it does next may end at once, whatever else takes long.
  void NoteCommand(int64_t now) { command_ = now; }
  // Something has ended; more may be left.
  void NoteEnd(int64_t now) {
    if (since_ != 0) Remember(now - since_);
    since_ = now;
    woken_ = false;
  }
  void NoteNoWork() {
    since_ = 0;
    woken_ = false;
  }

  // How long to sleep before the next look; 0: look on.
  int64_t PauseNs(int64_t now) const {
    const int64_t waited = now - since_;
    if (since_ == 0 || waited <= kWithoutSleepNs || now - command_ <= kAfterCommandNs ||
        IsLikely(waited)) {
      return 0;
    }
    int64_t pause = SleepNs(now);
    for (const int64_t took : took_) {
      const int64_t begin = took - kMarginNs - took / 32;
      if (begin > waited) pause = std::min(pause, begin - waited);
    }
    return pause;
  }

  // The same for one that must not look on: others want the processor.
  int64_t SleepNs(int64_t now) const {
    return std::clamp((now - std::max(since_, command_)) / 32, kShortestPauseNs, kLongestPauseNs);
  }

  // True once, shortly before an end is likely: who waits elsewhere may have gone to sleep.
  bool TakeWakeUp(int64_t now) {
    const int64_t waited = now - since_;
    if (since_ == 0 || woken_ || !IsNear(waited, kWakeUpMarginNs, 64)) return false;
    woken_ = true;
    return true;
  }

 private:
  // Shorter waits look without sleep.
  static constexpr int64_t kShortestNs = 200'000;
  static constexpr int64_t kMarginNs = 150'000;
  static constexpr int64_t kWakeUpMarginNs = 80'000;

  // Of one of the last times, by so much and a fraction of it.
  bool IsNear(int64_t waited, int64_t margin, int64_t fraction) const {
    return std::any_of(took_.begin(), took_.end(), [=](int64_t took) {
      const int64_t by = margin + took / fraction;
      return took != 0 && waited >= took - by && waited <= took + by;
    });
  }
  bool IsLikely(int64_t waited) const { return IsNear(waited, kMarginNs, 32); }

  void Remember(int64_t took) {
    if (took < kShortestNs) return;
    const auto like = [took](int64_t one) { return std::abs(one - took) <= took / 16; };
    auto place = std::find_if(took_.begin(), took_.end(), like);
    if (place == took_.end()) place = took_.begin() + static_cast<ptrdiff_t>(next_++ % kRemembered);
    *place = took;
  }

  static constexpr size_t kRemembered = 4;

  int64_t since_ = 0;  // 0: the driver has nothing to do.
  int64_t command_ = 0;
  bool woken_ = false;
  std::array<int64_t, kRemembered> took_ = {};
  size_t next_ = 0;
};

}  // namespace sluice::worker
