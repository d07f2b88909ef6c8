// SPDX-License-Identifier: Apache-2.0
//
// Closing what a stranger made takes as long as he likes: a file of his own file system (FUSE)
// waits for his answer, a TCP socket (SO_LINGER) for his reader; and so does closing a local socket
// in which messages lie unread that carry such. So a thread that others depend on leaves it to one
// of these.
//
// Who calls bounds it: by `until_closed`, which counts against the stranger as long as it lives.
// Thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "broker/os/scoped_handle.h"

namespace sluice::os {

// Closes `fds` on a thread of its own, then lets `until_closed` go. Here, before it returns, what
// cannot take long (memory; a socket for which RefuseDescriptors has held from the start). Where no
// thread is to be had, or 2048 are at it already, connections are hung up, and closing waits for a
// thread that comes free, or for a later call.
void CloseElsewhere(std::vector<UniqueFd> fds, std::shared_ptr<void> until_closed = nullptr);
void CloseElsewhere(UniqueFd fd, std::shared_ptr<void> until_closed = nullptr);

// Descriptors that a stranger made: closed so wherever they are dropped.
class StrangersFds {
 public:
  StrangersFds() = default;
  explicit StrangersFds(std::vector<UniqueFd> fds) : fds_(std::move(fds)) {}
  ~StrangersFds() { CloseElsewhere(std::move(fds_)); }
  StrangersFds(StrangersFds&&) = default;
  StrangersFds& operator=(StrangersFds&& other) noexcept {
    fds_.swap(other.fds_);
    return *this;
  }

  bool empty() const { return fds_.empty(); }
  size_t size() const { return fds_.size(); }
  void push_back(UniqueFd fd) { fds_.push_back(std::move(fd)); }
  const UniqueFd& operator[](size_t i) const { return fds_[i]; }
  auto begin() const { return fds_.begin(); }
  auto end() const { return fds_.end(); }

 private:
  std::vector<UniqueFd> fds_;
};

}  // namespace sluice::os
