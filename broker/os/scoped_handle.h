// SPDX-License-Identifier: Apache-2.0
//
// UniqueFd owns one descriptor and closes it once. Ownership moves by value: a function that takes
// a UniqueFd has taken the descriptor on every path, a function that takes an int only looks at it.
// Thread-compatible.
#pragma once

#include <utility>

namespace sluice::os {

class UniqueFd {
 public:
  explicit UniqueFd(int fd = -1) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

  // Closes what it held. Preserves errno.
  void reset(int fd = -1);

 private:
  int fd_;
};

// Another descriptor of the same thing, close-on-exec; an invalid one if `fd` is none or there are
// no more to be had.
UniqueFd DuplicateFd(int fd);

}  // namespace sluice::os
