// SPDX-License-Identifier: Apache-2.0
#include "broker/os/close_elsewhere.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>

#include "broker/os/lasting_thread.h"
#include "platform_linux/pass_rights.h"

namespace sluice::os {
namespace {

// Callers' limits are lower; this one is for descriptors that nobody counts, such as refused
// connections.
constexpr int kMostThreads = 2048;

struct Batch {
  std::shared_ptr<void> until_closed;  // Dropped last.
  std::vector<UniqueFd> fds;
  bool hung_up = false;
};

// The descriptors that no thread has taken yet. Never destroyed: threads outlive main.
struct Waiting {
  std::mutex mutex;
  std::deque<Batch> batches;
  int threads = 0;
};

Waiting& All() {
  static Waiting& waiting = *new Waiting;
  return waiting;
}

// A memfd belongs to a file system of the kernel's own.
bool MayTakeLong(const UniqueFd& fd) {
  return fd.valid() && TakesDescriptors(fd.get()) && ::fcntl(fd.get(), F_GET_SEALS) < 0;
}

void CloseBatches() {
  Waiting& waiting = All();
  while (true) {
    Batch next;  // Closed, then dropped, without the lock.
    const std::lock_guard<std::mutex> lock(waiting.mutex);
    if (waiting.batches.empty()) {
      --waiting.threads;
      return;
    }
    next = std::move(waiting.batches.front());
    waiting.batches.pop_front();
  }
}

// False: there is no thread to be had.
bool StartOne() {
  Waiting& waiting = All();
  {
    const std::lock_guard<std::mutex> lock(waiting.mutex);
    if (waiting.threads >= kMostThreads) return false;
    ++waiting.threads;
  }
  if (StartOnLastingThread(CloseBatches)) return true;
  const std::lock_guard<std::mutex> lock(waiting.mutex);
  --waiting.threads;
  return false;
}

// Ends connections for their peers at once, also while their descriptors wait to be closed. Not
// listeners: others may have those.
void HangUpAll(const std::vector<UniqueFd>& fds) {
  for (const UniqueFd& fd : fds) {
    int listening = 0;
    socklen_t size = sizeof(listening);
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 && !listening)
      ::shutdown(fd.get(), SHUT_RDWR);
  }
}

}  // namespace

void CloseElsewhere(std::vector<UniqueFd> fds, std::shared_ptr<void> until_closed) {
  if (std::none_of(fds.begin(), fds.end(), MayTakeLong)) return;
  Waiting& waiting = All();
  {
    const std::lock_guard<std::mutex> lock(waiting.mutex);
    waiting.batches.push_back({std::move(until_closed), std::move(fds)});
  }
  if (StartOne()) return;
  const std::lock_guard<std::mutex> lock(waiting.mutex);
  for (auto batch = waiting.batches.rbegin(); batch != waiting.batches.rend(); ++batch) {
    if (std::exchange(batch->hung_up, true)) break;
    HangUpAll(batch->fds);
  }
}

void CloseElsewhere(UniqueFd fd, std::shared_ptr<void> until_closed) {
  std::vector<UniqueFd> fds;
  fds.push_back(std::move(fd));
  CloseElsewhere(std::move(fds), std::move(until_closed));
}

}  // namespace sluice::os
