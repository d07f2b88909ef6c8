// SPDX-License-Identifier: Apache-2.0
#include "client_icd/base/home_thread.h"

#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace sluice::client {

// Leaked: threads may still run while the process ends.
struct HomeThread::Errands {
  absl::Mutex mu;
  std::vector<std::pair<std::shared_ptr<const HomeThread>, Errand>> left ABSL_GUARDED_BY(mu);
};

std::atomic<int> HomeThread::errands_left_{0};

HomeThread::Errands& HomeThread::All() {
  static Errands* const all = new Errands;
  return *all;
}

void HomeThread::Leave(std::shared_ptr<const HomeThread> home, Errand errand) {
  Errands& all = All();
  absl::MutexLock lock(&all.mu);
  all.left.emplace_back(std::move(home), std::move(errand));
  errands_left_.fetch_add(1, std::memory_order_relaxed);
}

void HomeThread::RunMine() {
  const int here = os::ThisThreadNumber();
  std::vector<Errand> mine;
  {
    Errands& all = All();
    absl::MutexLock lock(&all.mu);
    std::erase_if(all.left, [&](auto& one) {
      if (one.first->number_.load(std::memory_order_relaxed) != here) return false;
      mine.push_back(std::move(one.second));
      return true;
    });
    errands_left_.fetch_sub(static_cast<int>(mine.size()), std::memory_order_relaxed);
  }
  for (Errand& errand : mine) std::exchange(errand, nullptr)();
}

}  // namespace sluice::client
