// SPDX-License-Identifier: Apache-2.0
// Makes it safe to fail a user event whose dependents wait for other commands as well. A driver
// with DriverQuirks::aborts_on_failed_wait lets go of a command's lock while it fails it, before it
// says so. If the command's last other dependency ends then, another thread finds it ready and runs
// it. It ends twice, and the process aborts ("Assertion `cq->command_count > 0'", "Assertion
// `event->status == CL_SUBMITTED'"). Of 25 programs that do this 3000 times by themselves, 3
// aborted with version 6.0 and 5 with 7.1; of 6 with 3.1, 4.
//
// So a command that may fail by a user event of the application's, itself or by a command that it
// waits for, waits for that event's guard too. That is another user event, which is set to
// CL_COMPLETE once the first has been set, to whatever, and its dependents have failed. Until then
// nothing finds the command ready. One that waits for a single other command, the one before it in
// its queue, needs none.
//
//   user event U, guard G
//   K: a kernel
//   A: waits for K (in order), U, G
//   B: waits for A (in order), another kernel L, G
//
// Not guarded: a command that fails because work of ours does, a transfer say, in a thread of the
// driver's. Nor is in a queue out of order a marker or barrier without a list, whose dependencies
// are all of the queue. A guard in its list would turn it into another command.
//
// Thread-compatible: reached by the object table, which belongs to the session thread.
#pragma once

#include <algorithm>
#include <memory>

#include "absl/container/inlined_vector.h"
#include "daemon/worker/cl_handle.h"

namespace sluice::worker {

class Guard {
 public:
  // Of a context's user event. Null if the driver makes none.
  static std::shared_ptr<Guard> Make(cl_context context) {
    cl_int status = CL_SUCCESS;
    UniqueCl<cl_event> event(cl().clCreateUserEvent(context, &status));
    return status == CL_SUCCESS ? std::make_shared<Guard>(std::move(event)) : nullptr;
  }
  explicit Guard(UniqueCl<cl_event> event) : event_(std::move(event)) {}

  // The user event has been set, and all that fails by it has failed.
  void Lift() {
    if (event_) cl().clSetUserEventStatus(event_.get(), CL_COMPLETE);
    event_.reset();
  }
  bool lifted() const { return !event_; }
  cl_event event() const { return event_.get(); }

 private:
  UniqueCl<cl_event> event_;
};

// Those of all user events that something may fail by.
class Guards {
 public:
  void Add(const std::shared_ptr<Guard>& guard) {
    if (!guard->lifted() && std::find(all_.begin(), all_.end(), guard) == all_.end())
      all_.push_back(guard);
  }
  void Add(const Guards& others) {
    for (const std::shared_ptr<Guard>& guard : others.all_) Add(guard);
  }
  void DropLifted() {
    all_.erase(
        std::remove_if(all_.begin(), all_.end(), [](const auto& guard) { return guard->lifted(); }),
        all_.end());
  }
  bool empty() const { return all_.empty(); }
  void Clear() { all_.clear(); }
  template <typename List>
  void AppendTo(List* list) const {
    for (const std::shared_ptr<Guard>& guard : all_) {
      if (!guard->lifted()) list->push_back(guard->event());
    }
  }

 private:
  absl::InlinedVector<std::shared_ptr<Guard>, 1> all_;
};

}  // namespace sluice::worker
