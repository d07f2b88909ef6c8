// SPDX-License-Identifier: Apache-2.0
// Counts the commands of a session that have been accepted and have not ended, so that a client
// which does not keep to its limit cannot make the driver's queues grow without bound. The client
// counts the same way (client_icd/session/in_flight.h), and counts a command earlier and its end
// later than this side does: an honest one never reaches the bound here.
//
// The end of a command that has an event is seen. The others end with the next such command of
// their in-order queue, or with the next Finish: their queue counts them as *untracked* until one
// of these takes them over.
//
// QueueInFlight: accepting is the session thread's; CommandShare::End may come from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "daemon/worker/quota.h"

namespace sluice::worker {

class QueueInFlight;

// The commands that end with one: itself, and the untracked ones before it. Movable; ends once.
class CommandShare {
 public:
  CommandShare() = default;
  CommandShare(std::shared_ptr<QueueInFlight> queue, uint64_t commands)
      : queue_(std::move(queue)), commands_(commands) {}

  // `all_before`: what came before it in the queue has ended too; else only the command itself.
  // Before anybody is told of the end.
  void End(bool all_before);

 private:
  std::shared_ptr<QueueInFlight> queue_;  // Null: nothing is counted, or has ended.
  uint64_t commands_ = 0;
};

// One queue's part of the count.
class QueueInFlight : public std::enable_shared_from_this<QueueInFlight> {
 public:
  QueueInFlight(Quota* quota, bool in_order) : quota_(quota), in_order_(in_order) {}

  // A command whose end nobody will see.
  void AcceptUntracked() {
    quota_->AddCommand();
    untracked_.fetch_add(1, std::memory_order_relaxed);
  }
  // A command whose end will be seen. `after_all`: it ends after everything before it, whatever the
  // queue's order.
  CommandShare Accept(bool after_all) {
    quota_->AddCommand();
    const uint64_t before =
        in_order_ || after_all ? untracked_.exchange(0, std::memory_order_relaxed) : 0;
    return {shared_from_this(), before + 1};
  }
  // Everything accepted so far has ended.
  void AllEnded() { quota_->EndCommands(untracked_.exchange(0, std::memory_order_relaxed)); }

 private:
  friend class CommandShare;

  Quota* const quota_;
  const bool in_order_;
  std::atomic<uint64_t> untracked_{0};
};

inline void CommandShare::End(bool all_before) {
  const std::shared_ptr<QueueInFlight> queue = std::exchange(queue_, nullptr);
  if (queue == nullptr) return;
  if (!all_before) {
    queue->untracked_.fetch_add(commands_ - 1, std::memory_order_relaxed);
    commands_ = 1;
  }
  queue->quota_->EndCommands(commands_);
}

}  // namespace sluice::worker
