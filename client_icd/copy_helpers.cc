// SPDX-License-Identifier: Apache-2.0
#include "client_icd/copy_helpers.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "broker/os/this_process.h"
#include "broker/os/threads.h"
#include "proto/spin.h"

namespace sluice {
namespace {

constexpr uint64_t kWorthHelp = 1 << 20;
constexpr uint64_t kPieceBytes = 256 << 10;
constexpr int kMostHelpers = 7;
constexpr int kFewestProcessors = 4;
constexpr int64_t kLookForWorkNs = 200'000;
constexpr int64_t kCountAgainNs = 5'000'000;

}  // namespace

struct CopyHelpers::Shared {
  const int processors = UsableProcessors();
  const int process = ProcessId();
  absl::Mutex run_mu;  // One Run at a time; whoever finds it taken copies alone.

  std::atomic<uint64_t> calls{0};  // Counts jobs and Expects; changed under mu.
  std::atomic<uint64_t> next{0};   // First byte of the job that nobody has taken.
  std::atomic<int> working{0};     // Helpers that have the job; grows under mu.
  std::atomic<int> awake{0};

  absl::Mutex mu;
  absl::CondVar wake;
  const Piece* job ABSL_GUARDED_BY(mu) = nullptr;
  uint64_t total ABSL_GUARDED_BY(mu) = 0;
  int wanted ABSL_GUARDED_BY(mu) = 0;
  int asleep ABSL_GUARDED_BY(mu) = 0;
  int threads ABSL_GUARDED_BY(mu) = 0;
  bool ended ABSL_GUARDED_BY(mu) = false;

  // Written by the one Run.
  int64_t counted_ns = 0;
  int idle = 0;

  void Work(const Piece& piece, uint64_t all) {
    while (true) {
      const uint64_t at = next.fetch_add(kPieceBytes, std::memory_order_relaxed);
      if (at >= all) return;
      piece(at, std::min(kPieceBytes, all - at));
    }
  }
};

CopyHelpers& CopyHelpers::Get() {
  static CopyHelpers& helpers = *new CopyHelpers;
  return helpers;
}

CopyHelpers::CopyHelpers() : shared_(std::make_shared<Shared>()) {}

CopyHelpers::~CopyHelpers() {
  absl::MutexLock lock(&shared_->mu);
  shared_->ended = true;
  shared_->wake.SignalAll();
}

void CopyHelpers::Help(const std::shared_ptr<Shared>& shared) {
  uint64_t seen = 0;
  while (true) {
    const int64_t until = MonotonicNs() + kLookForWorkNs;
    while (shared->calls.load(std::memory_order_acquire) == seen && MonotonicNs() < until) {
#if defined(__x86_64__)
      for (int i = 0; i < 16; ++i) __builtin_ia32_pause();
#endif
    }
    const Piece* job = nullptr;
    uint64_t total = 0;
    {
      absl::MutexLock lock(&shared->mu);
      while (shared->calls.load(std::memory_order_relaxed) == seen && !shared->ended) {
        ++shared->asleep;
        shared->awake.fetch_sub(1, std::memory_order_relaxed);
        shared->wake.Wait(&shared->mu);
        shared->awake.fetch_add(1, std::memory_order_relaxed);
        --shared->asleep;
      }
      if (shared->ended) return;
      seen = shared->calls.load(std::memory_order_relaxed);
      if (shared->job == nullptr || shared->working >= shared->wanted) continue;
      shared->working.fetch_add(1, std::memory_order_relaxed);
      job = shared->job;
      total = shared->total;
    }
    shared->Work(*job, total);
    shared->working.fetch_sub(1, std::memory_order_release);  // Pairs with the acquire in Run.
  }
}

// Half of the idle processors: the driver, the worker and the application want some too.
int CopyHelpers::Wanted() {
  Shared& shared = *shared_;
  if (shared.processors < kFewestProcessors) return 0;
  if (const int64_t now = MonotonicNs(); now - shared.counted_ns > kCountAgainNs) {
    shared.counted_ns = now;
    const int others = RunnableThreads() - shared.awake.load(std::memory_order_relaxed);
    shared.idle = shared.processors - std::max(others, 1);
  }
  return std::clamp(shared.idle / 2, 0, kMostHelpers);
}

void CopyHelpers::Run(uint64_t total, Piece piece) {
  Shared& shared = *shared_;
  if (total < kWorthHelp || ProcessId() != shared.process || !shared.run_mu.TryLock())
    return piece(0, total);
  const int wanted = Wanted();
  if (wanted == 0) {
    shared.run_mu.Unlock();
    return piece(0, total);
  }
  int missing = 0;
  {
    absl::MutexLock lock(&shared.mu);
    missing = std::max(0, wanted - shared.threads);
    shared.threads += missing;
    shared.next.store(0, std::memory_order_relaxed);
    shared.job = &piece;
    shared.total = total;
    shared.wanted = wanted;
    shared.calls.fetch_add(1, std::memory_order_release);  // Pairs with the acquire in Help.
    if (shared.asleep > 0) shared.wake.SignalAll();
  }
  for (; missing > 0; --missing) {
    shared.awake.fetch_add(1, std::memory_order_relaxed);
    if (StartThread("sluice-copy", [shared = shared_] { Help(shared); })) continue;
    shared.awake.fetch_sub(1, std::memory_order_relaxed);
    absl::MutexLock lock(&shared.mu);
    --shared.threads;
  }
  shared.Work(piece, total);
  {
    absl::MutexLock lock(&shared.mu);
    shared.job = nullptr;  // Nobody takes it up any more.
  }
  // Each has one part at most left; the first looks cost less than a sleep.
  for (int looks = 0; shared.working.load(std::memory_order_acquire) != 0; ++looks) {
    if (looks > 1000) std::this_thread::yield();
  }
  shared.run_mu.Unlock();
}

void CopyHelpers::Expect(uint64_t bytes) {
  if (bytes < 2 * kWorthHelp || shared_->processors < kFewestProcessors) return;
  if (ProcessId() != shared_->process) return;
  absl::MutexLock lock(&shared_->mu);
  if (shared_->asleep == 0) return;
  shared_->calls.fetch_add(1, std::memory_order_release);
  shared_->wake.SignalAll();
}

}  // namespace sluice
