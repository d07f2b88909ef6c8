// SPDX-License-Identifier: Apache-2.0
// The thread of the application's that uses what only one thread may use (a Direct3D device of one
// thread), and errands that others leave to it. It does them at the end of its next OpenCL call.
// Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "broker/os/threads.h"

namespace sluice::client {

class HomeThread {
 public:
  using Errand = std::function<void()>;

  // The calling thread.
  HomeThread() : number_(os::ThisThreadNumber()) {}

  // The calling thread is it from now on, also for what was left before.
  void BindToThisThread() { number_.store(os::ThisThreadNumber(), std::memory_order_relaxed); }

  // Never done, nor let go of, if that thread makes no call any more.
  static void Leave(std::shared_ptr<const HomeThread> home, Errand errand);

  // In every call of the application's: does what is left to the calling thread when it ends.
  struct ErrandsAfter {
    ~ErrandsAfter() {
      if (errands_left_.load(std::memory_order_relaxed) != 0) RunMine();
    }
  };

 private:
  struct Errands;
  static Errands& All();
  static void RunMine();

  // Of all threads: mostly there are none.
  static std::atomic<int> errands_left_;

  std::atomic<int> number_;
};

}  // namespace sluice::client
