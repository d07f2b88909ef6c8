// SPDX-License-Identifier: Apache-2.0
// One value for each process. A forked child gets one anew: there the parent's threads are gone,
// and its locks may be held for ever. Never deleted, since threads may still run while the process
// ends. Thread-safe.
#pragma once

#include <atomic>

#include "broker/os/this_process.h"

namespace sluice::client {

template <typename T>
class PerProcess {
 public:
  T& Get() {
    Owned* known = current_.load(std::memory_order_acquire);
    while (known == nullptr || known->owner != os::ProcessId()) {
      auto* const own = new Owned;
      if (current_.compare_exchange_strong(known, own, std::memory_order_acq_rel))
        return own->value;
      delete own;
    }
    return known->value;
  }

 private:
  struct Owned {
    const int owner = os::ProcessId();
    T value;
  };
  std::atomic<Owned*> current_{nullptr};
};

}  // namespace sluice::client
