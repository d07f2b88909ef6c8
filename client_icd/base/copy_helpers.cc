// SPDX-License-Identifier: Apache-2.0
#include "client_icd/base/copy_helpers.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "broker/os/this_process.h"
#include "broker/os/threads.h"
#include "proto/spin.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace sluice::client {
namespace {

constexpr uint64_t kWorthHelp = 1 << 20;
constexpr uint64_t kPieceBytes = 64 << 10;
constexpr int kMostHelpers = 7;
constexpr int kFewestProcessors = 4;
constexpr int64_t kLookForWorkNs = 200'000;
constexpr int64_t kCountAgainNs = 5'000'000;
constexpr int kLooksInClose = 1'020;
constexpr int kYieldsInClose = 20;

}  // namespace

struct CopyHelpers::Shared {
  explicit Shared(int usable_processors) : processors(usable_processors) {}

  const int processors;
  const int process = os::ProcessId();
  absl::Mutex run_mu;  // One Run at a time; whoever finds it taken copies alone.

  // The job, which helpers take up without a lock: all of them come at once. A helper first counts
  // itself in `working`, then looks whether the job is `open`; a Run first closes it, then waits
  // until nobody works. So whoever finds it open may read what stands here till it is counted out.
  std::atomic<bool> open{false};
  std::atomic<int> working{0};
  std::atomic<int> places{0};     // How many helpers more may join.
  std::atomic<uint64_t> next{0};  // First byte that nobody has taken.
  const Piece* job = nullptr;     // Written while it is closed and nobody works.
  uint64_t total = 0;

  std::atomic<uint64_t> calls{0};  // Counts jobs and Expects; changed under mu.
  std::atomic<int> awake{0};

  absl::Mutex mu;
  absl::CondVar wake;
  std::atomic<bool> closing{false};  // Close sleeps, or is about to; changed under mu.
  absl::CondVar nobody_works;
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

  // On a helper.
  void Join() {
    working.fetch_add(1, std::memory_order_seq_cst);
    if (open.load(std::memory_order_seq_cst) &&
        places.fetch_sub(1, std::memory_order_relaxed) > 0) {
      Work(*job, total);
    }
    // Either this sees that Close is about to sleep, or Close sees this count.
    if (working.fetch_sub(1, std::memory_order_seq_cst) > 1) return;
    if (!closing.load(std::memory_order_seq_cst)) return;
    absl::MutexLock lock(&mu);
    nobody_works.Signal();
  }

  // Returns when no helper uses the job. Each has one part at most left; the first looks cost less
  // than a sleep. One that gets no processor may need this one, which yielding does not give it if
  // the application's thread has a real-time priority.
  void Close() {
    open.store(false, std::memory_order_seq_cst);
    for (int looks = 0; looks < kLooksInClose; ++looks) {
      if (working.load(std::memory_order_seq_cst) == 0) return;
      if (looks > kLooksInClose - kYieldsInClose) std::this_thread::yield();
    }
    absl::MutexLock lock(&mu);
    closing.store(true, std::memory_order_seq_cst);
    while (working.load(std::memory_order_seq_cst) != 0) nobody_works.Wait(&mu);
    closing.store(false, std::memory_order_relaxed);
  }
};

#if defined(__SSE2__)
void StreamingCopy(uint8_t* to, const uint8_t* from, size_t bytes) {
  const size_t before = std::min<size_t>(-reinterpret_cast<uintptr_t>(to) & 63, bytes);
  std::memcpy(to, from, before);
  to += before;
  from += before;
  size_t left = bytes - before;
  for (; left >= 64; left -= 64, to += 64, from += 64) {
    const auto* source = reinterpret_cast<const __m128i*>(from);
    auto* target = reinterpret_cast<__m128i*>(to);
    const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
  std::memcpy(to, from, left);
  _mm_sfence();  // Before whoever is told that the bytes are there.
}
#else
void StreamingCopy(uint8_t* to, const uint8_t* from, size_t bytes) { std::memcpy(to, from, bytes); }
#endif

CopyHelpers& CopyHelpers::Get() {
  static CopyHelpers& helpers = *new CopyHelpers;
  return helpers;
}

CopyHelpers::CopyHelpers(int processors) : shared_(std::make_shared<Shared>(processors)) {}

CopyHelpers::~CopyHelpers() {
  absl::MutexLock lock(&shared_->mu);
  shared_->ended = true;
  shared_->wake.SignalAll();
}

void CopyHelpers::Help(const std::shared_ptr<Shared>& shared) {
  uint64_t seen = 0;
  while (true) {
    const int64_t until = wire::MonotonicNs() + kLookForWorkNs;
    while (shared->calls.load(std::memory_order_acquire) == seen && wire::MonotonicNs() < until) {
#if defined(__x86_64__)
      for (int i = 0; i < 16; ++i) __builtin_ia32_pause();
#endif
    }
    uint64_t now = shared->calls.load(std::memory_order_acquire);  // Pairs with Run's.
    if (now == seen) {
      absl::MutexLock lock(&shared->mu);
      while ((now = shared->calls.load(std::memory_order_relaxed)) == seen && !shared->ended) {
        ++shared->asleep;
        shared->awake.fetch_sub(1, std::memory_order_relaxed);
        shared->wake.Wait(&shared->mu);
        shared->awake.fetch_add(1, std::memory_order_relaxed);
        --shared->asleep;
      }
      if (shared->ended) return;
    }
    seen = now;
    shared->Join();
  }
}

// Half of the idle processors: the driver, the worker and the application want some too.
int CopyHelpers::Wanted() {
  Shared& shared = *shared_;
  if (shared.processors < kFewestProcessors) return 0;
  if (const int64_t now = wire::MonotonicNs(); now - shared.counted_ns > kCountAgainNs) {
    shared.counted_ns = now;
    const int others = os::RunnableThreads() - shared.awake.load(std::memory_order_relaxed);
    shared.idle = shared.processors - std::max(others, 1);
  }
  return std::clamp(shared.idle / 2, 0, kMostHelpers);
}

void CopyHelpers::Run(uint64_t total, Piece piece) {
  Shared& shared = *shared_;
  if (total < kWorthHelp || os::ProcessId() != shared.process || !shared.run_mu.TryLock())
    return piece(0, total);
  const int wanted = Wanted();
  if (wanted == 0) {
    shared.run_mu.Unlock();
    return piece(0, total);
  }
  shared.job = &piece;
  shared.total = total;
  shared.next.store(0, std::memory_order_relaxed);
  shared.places.store(wanted, std::memory_order_relaxed);
  shared.open.store(true, std::memory_order_seq_cst);
  int missing = 0;
  {
    absl::MutexLock lock(&shared.mu);
    missing = std::max(0, wanted - shared.threads);
    shared.threads += missing;
    shared.calls.fetch_add(1, std::memory_order_release);  // Pairs with the acquire in Help.
    if (shared.asleep > 0) shared.wake.SignalAll();
  }
  for (; missing > 0; --missing) {
    shared.awake.fetch_add(1, std::memory_order_relaxed);
    if (os::StartThread("sluice-copy", [shared = shared_] { Help(shared); })) continue;
    shared.awake.fetch_sub(1, std::memory_order_relaxed);
    absl::MutexLock lock(&shared.mu);
    --shared.threads;
  }
  shared.Work(piece, total);
  shared.Close();
  shared.run_mu.Unlock();
}

void CopyHelpers::Expect(uint64_t bytes) {
  if (bytes < 2 * kWorthHelp || shared_->processors < kFewestProcessors) return;
  if (os::ProcessId() != shared_->process) return;
  absl::MutexLock lock(&shared_->mu);
  if (shared_->asleep == 0) return;
  shared_->calls.fetch_add(1, std::memory_order_release);
  shared_->wake.SignalAll();
}

}  // namespace sluice::client
