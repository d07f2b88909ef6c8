// SPDX-License-Identifier: Apache-2.0
//
// Closing a descriptor that a stranger made takes as long as the stranger likes. A file of a FUSE
// file system waits for its server's answer, a TCP socket (SO_LINGER) for its reader; a local
// socket closes with itself those that lie unread in it. So a thread that others depend on leaves
// the closing to another thread.
//
// The caller bounds how many there are: `until_closed` counts against the stranger as long as it
// lives. Thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "broker/os/scoped_handle.h"

namespace sluice::os {

// Closes `fds` on a thread of its own, then drops `until_closed`. Before it returns it closes what
// cannot take long: memory, or a socket for which RefuseDescriptors has held from the start. If
// there is no thread to be had, or 2048 close already, it hangs connections up; closing them waits
// for a thread that comes free, or for a later call.
void CloseElsewhere(std::vector<UniqueFd> fds, std::shared_ptr<void> until_closed = nullptr);
void CloseElsewhere(UniqueFd fd, std::shared_ptr<void> until_closed = nullptr);

// Descriptors that a stranger made: the destructor closes them by CloseElsewhere.
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
  std::vector<UniqueFd> Take() { return std::exchange(fds_, {}); }
  const UniqueFd& operator[](size_t i) const { return fds_[i]; }
  auto begin() const { return fds_.begin(); }
  auto end() const { return fds_.end(); }

 private:
  std::vector<UniqueFd> fds_;
};

}  // namespace sluice::os
