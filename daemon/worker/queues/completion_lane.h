// SPDX-License-Identifier: Apache-2.0
// An event that Completions watches, and its place in a queue. For completions.cc alone.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "daemon/worker/queues/completions.h"

namespace sluice::worker {

// Of an event whose status nobody has read since it ended.
inline constexpr cl_int kNotRead = CL_QUEUED;

struct Completions::Pending {
  Completions* owner = nullptr;
  uint64_t event_id = 0;
  bool profiling = false;
  Order order;
  std::unique_ptr<Carried> carried;  // Whoever delivers takes these two away.
  std::function<void(cl_int)> then;
  // Guarded by the owner's mutex.
  std::shared_ptr<const UniqueCl<cl_event>> event;  // Null once delivered.
  bool ended = false;                               // Known to have ended: no longer in the list.
  cl_int status = kNotRead;                         // Then.
  bool taken = false;         // Out of its lane: in the hands of who delivers.
  bool polled = false;        // The driver was not asked for one.
  int64_t runs_since_ns = 0;  // LongestRunNs has seen it run from then on; its thread's own.
  PendingRef self;            // While in the list.
  PendingRef drivers;         // Until the driver has called back: it holds the bare pointer.
  Pending* next = nullptr;
  Pending* previous = nullptr;
};

// A queue's completions that have not been delivered, oldest first. One thread delivers at a time;
// the others leave what they know and go. All of it is guarded by the mutex of Completions.
class CompletionLane {
 public:
  explicit CompletionLane(bool in_order) : in_order_(in_order) {}

  void Add(const Completions::PendingRef& pending) { waiting_.push_back(pending); }

  // True if the caller is to deliver.
  bool NoteEnded() {
    ++ended_;
    ++all_ended_;
    return !std::exchange(delivering_, true);
  }

  struct Item {
    Completions::PendingRef pending;
    std::shared_ptr<const UniqueCl<cl_event>> event;
    cl_int status = kNotRead;
  };

  // Takes what may be delivered: what has ended, and what stands before such a one that comes after
  // all. Of the latter only the driver knows whether it has ended. False: nothing, and the caller's
  // turn is over.
  bool Take(std::vector<Item>* batch) {
    size_t end = 0;      // One past the newest that has ended,
    size_t ordered = 0;  // and that has and comes after all.
    for (size_t i = 0; ended_ > 0; ++i) {
      if (!waiting_[i]->ended) continue;
      --ended_;
      end = i + 1;
      if (in_order_ || waiting_[i]->order.after_all) ordered = i + 1;
    }
    std::vector<Completions::PendingRef> stay;
    for (size_t i = 0; i < end; ++i) {
      Completions::PendingRef& pending = waiting_[i];
      if (pending->ended || i < ordered) {
        pending->taken = true;
        batch->push_back({pending, pending->event, pending->status});
      } else {
        stay.push_back(std::move(pending));
      }
    }
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<ptrdiff_t>(end));
    waiting_.insert(waiting_.begin(), stay.begin(), stay.end());
    if (batch->empty()) delivering_ = false;
    return !batch->empty();
  }

  // The oldest that Poll may ask for; null: none is there. In order, the end of one behind it
  // comes later.
  Completions::PendingRef FirstToLookAt() const {
    for (const Completions::PendingRef& one : waiting_) {
      if (one->polled && !one->ended && !one->order.ends_late) return one;
    }
    return nullptr;
  }
  void LookAtAll() {
    for (const Completions::PendingRef& pending : waiting_) pending->order.ends_late = false;
  }
  bool IsOldest(const Completions::PendingRef& pending) const {
    return !waiting_.empty() && waiting_.front() == pending;
  }
  // The index-th, if there are so many, and Poll may ask for it.
  Completions::PendingRef PolledAt(size_t index) const {
    if (index >= waiting_.size() || !waiting_[index]->polled) return nullptr;
    return waiting_[index]->order.ends_late ? nullptr : waiting_[index];
  }
  // The one before the first of waiting_[1..last] that is a step (Then); null: none is.
  Completions::PendingRef LastBeforeStep(size_t last) const {
    for (size_t i = 1; i <= last && i < waiting_.size(); ++i) {
      if (waiting_[i]->then) return waiting_[i - 1];
    }
    return nullptr;
  }

  // Before everything that waits. From now on Poll asks for it.
  void PutBack(const Completions::PendingRef& pending) {
    pending->taken = false;
    pending->order.ends_late = false;
    waiting_.push_front(pending);
  }

  // When LongestRunNs last found that more had ended.
  int64_t SeenToEndNs(int64_t now) {
    if (std::exchange(all_ended_seen_, all_ended_) != all_ended_) seen_to_end_ns_ = now;
    return seen_to_end_ns_;
  }

  bool idle() const { return waiting_.empty() && !delivering_; }
  bool in_order() const { return in_order_; }

 private:
  const bool in_order_;
  std::deque<Completions::PendingRef> waiting_;
  size_t ended_ = 0;  // Of those waiting.
  uint64_t all_ended_ = 0;
  uint64_t all_ended_seen_ = 0;
  int64_t seen_to_end_ns_ = 0;
  bool delivering_ = false;
};

}  // namespace sluice::worker
