// SPDX-License-Identifier: Apache-2.0
#include "broker/os/lasting_thread.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "broker/os/threads.h"

namespace sluice::os {
namespace {

// Never destroyed: its threads use it.
class LastingThreads {
 public:
  bool Start(std::function<void()> body) {
    if (OtherThreadsWereEnded()) return false;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (idle_ > bodies_.size()) {
        bodies_.push_back(std::move(body));
        wake_.notify_one();
        return true;
      }
    }
    return StartThread("sluice-lasting", [this, body = std::move(body)]() mutable {
      std::exchange(body, nullptr)();
      Serve();
    });
  }

 private:
  [[noreturn]] void Serve() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      ++idle_;
      wake_.wait(lock, [this] { return !bodies_.empty(); });
      --idle_;
      std::function<void()> body = std::move(bodies_.front());
      bodies_.pop_front();
      lock.unlock();
      std::exchange(body, nullptr)();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  size_t idle_ = 0;  // Threads that wait for a body.
  std::deque<std::function<void()>> bodies_;
};

LastingThreads& Threads() {
  static auto* const threads = new LastingThreads;
  return *threads;
}

}  // namespace

bool IoEndsWithItsThread() { return true; }

bool StartOnLastingThread(std::function<void()> body) { return Threads().Start(std::move(body)); }

void RunWhereIoLasts(const std::function<void()>& body) {
  struct {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
  } run;
  const bool started = Threads().Start([&] {
    body();
    const std::lock_guard<std::mutex> lock(run.mutex);
    run.done = true;
    run.changed.notify_one();
  });
  if (!started) return body();
  std::unique_lock<std::mutex> lock(run.mutex);
  run.changed.wait(lock, [&] { return run.done; });
}

}  // namespace sluice::os
