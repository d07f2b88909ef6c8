// SPDX-License-Identifier: Apache-2.0
// Commands of a queue out of order that its driver's queue does not know: large transfers, and the
// markers of an acquire or release or of a command that has nothing to do (list_only). A user event
// of ours stands for each wherever the driver must wait for it, and is set once the command has
// ended:
//
//   [the wait list, the last barrier] -> WhenAllComplete -> start -> last -> told, event set
//
// No marker of the driver's with a list does that for us. One may wait for everything that was
// enqueued before it. So an acquire hung behind a command it had nothing to do with, and 400
// acquires and releases took 33 s. A command that waits for all of the queue is given these events
// when it is enqueued (OwnEvents).
#pragma once

#include <CL/cl.h>

#include <functional>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "daemon/worker/cl_handle.h"
#include "daemon/worker/queues/completions.h"
#include "daemon/worker/queues/in_flight.h"

namespace sluice::worker {

struct ContextObject;

// Those of one queue that may not have ended. Session thread only.
class OwnEvents {
 public:
  void Add(UniqueCl<cl_event> event);
  std::vector<cl_event> Pending();
  void Clear() { events_.clear(); }

 private:
  void DropEnded();

  std::vector<UniqueCl<cl_event>> events_;
  size_t drop_at_ = 64;  // Twice what was left the last time.
};

// Calls then(CL_COMPLETE) when all of them have completed, or as soon as one has failed
// then(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST): on this thread if that is so already, else on
// any. It must not wait.
void WhenAllComplete(Completions& completions, absl::Span<const cl_event> events,
                     std::function<void(cl_int status)> then);

// One such command; `Begin` when it may run. Kept by the callbacks that are still to come.
class OwnCommand : public std::enable_shared_from_this<OwnCommand> {
 public:
  // As of Enqueuer::RunWhenReady; an empty one does nothing.
  struct Steps {
    std::function<cl_int(cl_event* ended)> start;
    std::function<cl_int(cl_int ended)> last;
  };

  OwnCommand(Completions* completions, PrintfCapture* printf, uint64_t event_id, Steps steps)
      : completions_(completions), printf_(printf), event_id_(event_id), steps_(std::move(steps)) {}

  cl_int MakeEvent(cl_context context);
  cl_event event() const { return done_.get(); }
  void SetShare(CommandShare share) { share_ = std::move(share); }
  // Its times are wanted: those of markers in this queue, in order and with profiling, of the
  // context's.
  void SetTimed(std::shared_ptr<ContextObject> context, cl_command_queue timed);

  void Begin(cl_int before);

 private:
  void Ended(cl_int status);
  void Tell(cl_int status, const EventTimes* times);

  Completions* const completions_;
  PrintfCapture* const printf_;
  const uint64_t event_id_;
  Steps steps_;
  UniqueCl<cl_event> done_;
  CommandShare share_;
  std::shared_ptr<ContextObject> context_;
  cl_command_queue timed_ = nullptr;
  UniqueCl<cl_event> queued_;  // A marker from when it was enqueued.
};

}  // namespace sluice::worker
