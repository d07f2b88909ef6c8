// SPDX-License-Identifier: Apache-2.0
//
// Counts the things that each key has. A slot stands for each thing and is dropped when the thing
// is quite gone, on any thread, and perhaps after this has been destroyed.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace sluice::broker {

template <typename Key>
class Slots {
 public:
  std::shared_ptr<void> Take(const Key& key) {
    {
      absl::MutexLock lock(&counts_->mutex);
      ++counts_->of[key];
      ++counts_->total;
    }
    return std::shared_ptr<void>(counts_.get(), [counts = counts_, key](void*) {
      absl::MutexLock lock(&counts->mutex);
      --counts->total;
      const auto found = counts->of.find(key);
      // A stream of strangers must not grow the map.
      if (--found->second == 0) counts->of.erase(found);
    });
  }

  uint64_t CountOf(const Key& key) const {
    absl::MutexLock lock(&counts_->mutex);
    const auto found = counts_->of.find(key);
    return found == counts_->of.end() ? 0 : found->second;
  }

  uint64_t total() const {
    absl::MutexLock lock(&counts_->mutex);
    return counts_->total;
  }

 private:
  struct Counts {
    absl::Mutex mutex;
    std::map<Key, uint64_t> of ABSL_GUARDED_BY(mutex);
    uint64_t total ABSL_GUARDED_BY(mutex) = 0;
  };

  const std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
};

}  // namespace sluice::broker
