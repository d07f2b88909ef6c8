// SPDX-License-Identifier: Apache-2.0
#include "broker/os/close_elsewhere.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "broker/os/lasting_thread.h"
#include "platform_linux/pass_rights.h"

namespace sluice {
namespace {

// Their callers' limits are lower; this one is for what nobody counts, as connections beyond all
// limits.
constexpr int kMostThreads = 2048;

std::atomic<int> threads{0};

bool MayTakeLong(const UniqueFd& fd) { return fd.valid() && TakesDescriptors(fd.get()); }

}  // namespace

void CloseElsewhere(std::vector<UniqueFd> fds, std::shared_ptr<void> until_closed) {
  if (std::none_of(fds.begin(), fds.end(), MayTakeLong)) return;
  if (threads.fetch_add(1) < kMostThreads) {
    auto held = std::make_shared<std::vector<UniqueFd>>(std::move(fds));
    const bool started = StartOnLastingThread([held, until_closed]() mutable {
      held->clear();
      until_closed.reset();
      threads.fetch_sub(1);
    });
    if (started) return held.reset();
  }
  threads.fetch_sub(1);
}

void CloseElsewhere(UniqueFd fd, std::shared_ptr<void> until_closed) {
  std::vector<UniqueFd> fds;
  fds.push_back(std::move(fd));
  CloseElsewhere(std::move(fds), std::move(until_closed));
}

}  // namespace sluice
