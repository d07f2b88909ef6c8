// SPDX-License-Identifier: Apache-2.0
// The memory of mappings that lies neither in the heap nor with the application (map.h).
//
// ShadowPool belongs to the Session; a Shadow may outlive both. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace sluice::client {

// Page-aligned memory of the client.
class Shadow {
 public:
  // Null if there is not enough memory.
  static std::unique_ptr<Shadow> Make(size_t bytes);
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  uint8_t* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  Shadow(uint8_t* data, size_t bytes) : data_(data), bytes_(bytes) {}

  uint8_t* const data_;
  const size_t bytes_;
};

// Keeps the memory of one shadow that is no longer used for the next: giving pages back and
// faulting new ones in takes longer than the bytes of a map take to move.
class ShadowPool : public std::enable_shared_from_this<ShadowPool> {
 public:
  // Larger ones are not kept.
  static constexpr size_t kMaxSpareBytes = size_t{64} << 20;

  // At least so many bytes, with any contents; null if there is not enough memory.
  std::shared_ptr<Shadow> Get(size_t bytes);

 private:
  void TakeBack(std::unique_ptr<Shadow> shadow);

  absl::Mutex mu_;
  std::unique_ptr<Shadow> spare_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice::client
