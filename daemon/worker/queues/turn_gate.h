// SPDX-License-Identifier: Apache-2.0
// Where the worker waits for its turn at the device (broker/scheduling, proto/turn_page.h): before
// it gives the driver a command that can run. While no other worker of the device is at work, that
// costs one relaxed load and one store. In a turn's absence the session thread waits in the gate:
// what is behind the command in the ring waits with it, for the others' turns and no longer, since
// those end by the clock. It goes on looking after what is under way.
//
// Not held back, and not counted as work: a command whose wait may be for somebody else (a user
// event, a shared object, a transfer), and transfers, which may run beside another's kernels.
//
// Where accounts have shares, a turn's end waits for all that was submitted in it, and its worker
// is charged for that. The gate then lets no more work ahead of the device than the broker says
// (kPaced). How long a command takes is measured meanwhile (running_count.h).
//
// Session thread only, but for running(). The sessions of a pool share one (Share), which is their
// worker's: then each one's thread uses it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "absl/synchronization/mutex.h"
#include "broker/os/shared_memory.h"
#include "daemon/worker/queues/running_count.h"
#include "proto/turn_page.h"

namespace sluice::worker {

class TurnGate {
 public:
  // Turns pay nowhere, where a switch between workers is dear, or also where it costs nothing.
  // Elsewhere the device is one of shares alone.
  enum class Pays { kNowhere, kWhereDear, kEverywhere };
  // Of a pool. Before all else.
  void Share() {
    shared_ = true;
    running_.Share();
  }
  // Before the session's first command. Without it there are no turns.
  void Attach(os::SharedMapping orders, os::SharedMapping words, Pays pays);
  // The pages outlive this.
  void AttachForTesting(const wire::TurnOrders* orders, wire::TurnWords* words, Pays pays);

  // A context of the device has been made. The first counts, but one with a use for turns goes
  // before one of shares alone: the turns of one device cannot be waited for with another's in
  // hand.
  void Use(uint64_t device_key, bool switches_are_dear, bool is_cpu);

  // Before a command is given to the driver. `flush` is called before a wait, `look` often in it:
  // true if it found something that has not ended. `wake_client`: shortly before its end.
  struct Meanwhile {
    std::function<void()> flush;
    std::function<bool()> look;
    std::function<void()> wake_client;
  };
  bool MustWait(uint64_t device_key) const {
    return !wire::MayGo(orders_->order.load(std::memory_order_relaxed)) &&
           device_key == device_.load(std::memory_order_relaxed);
  }
  // True: the command is to be counted until it has ended, whoever asks about it (kPaced).
  bool Wait(const Meanwhile& meanwhile);
  void NoteSubmitted() {
    if (shared_) {
      words_->submitted.fetch_add(1, std::memory_order_relaxed);
    } else {
      words_->submitted.store(++submitted_, std::memory_order_relaxed);
    }
  }

  // The commands under way that can run: for Completions, which counts them.
  RunningCount* running() { return &running_; }

 private:
  bool IsSilent() const;
  bool HasCredit(int64_t since_ns) const;
  void AwaitAnEnd(const Meanwhile& meanwhile);
  // `*said`: whether this thread's wait is told of.
  void SayWaiting(bool waiting, bool* said);

  os::SharedMapping orders_page_;
  os::SharedMapping words_page_;
  wire::TurnOrders no_orders_ = {};
  wire::TurnWords no_words_ = {};
  const wire::TurnOrders* orders_ = &no_orders_;
  wire::TurnWords* words_ = &no_words_;
  RunningCount running_{orders_, &words_->running};
  Pays pays_ = Pays::kNowhere;
  bool has_turns_ = false;  // Of device_; else shares alone.
  std::atomic<uint64_t> device_ = 0;
  uint32_t submitted_ = 0;
  bool shared_ = false;
  absl::Mutex mu_;  // Taken only where it is shared: by Use, and around the next.
  int waiting_ = 0;
};

}  // namespace sluice::worker
