// SPDX-License-Identifier: Apache-2.0
// A queue out of order. A command waits for its list and the last barrier. There are commands that
// the driver's queue does not know (own_commands.h): a marker of the driver's stands for them
// before what comes after all.
//
// Session thread only.
#pragma once

#include <memory>
#include <utility>

#include "daemon/worker/queues/own_commands.h"
#include "daemon/worker/queues/queue.h"

namespace sluice::worker {

class OutOfOrderQueue final : public QueueObject {
 public:
  explicit OutOfOrderQueue(Quota* quota) : QueueObject(/*in_order=*/false, quota) {}

  OutOfOrderQueue* AsOutOfOrder() override { return this; }

  cl_int PrepareCommand(Session& session, bool after_all) override;
  bool CanRun(bool after_all) override { return !after_all && !IsBarred(); }
  bool RunsUnheld() override { return false; }
  // Without profiling the command is one of our own. Times are the driver's only.
  bool NeedsAList() const override { return profiling; }
  cl_int EnqueueBarrier(Session& session, WaitList* list) override;
  void AddGuardsTo(Guards*) override {}  // For one command at most, the barrier.

  // The end of a later command says nothing of it: each has an event.
  bool MayLeaveUnmarked(bool) const override { return false; }
  void LeaveUnmarked(std::unique_ptr<Carried>) override {}
  std::unique_ptr<Carried> CollectUnmarked(std::unique_ptr<Carried> carried) override {
    return carried;
  }
  cl_int Mark(Session&) override { return CL_SUCCESS; }
  bool HoldsUnmarked() const override { return false; }
  bool EndsWithLater() const override { return false; }

  void NoteGuards(const Guards&) override {}
  bool NoteEnqueued(Session& session, cl_event event, absl::Span<const cl_event> waits,
                    bool can_run) override;
  void NoteNewest(UniqueCl<cl_event>, bool) override {}
  void NoteBarrier(cl_event event) override { last_barrier_ = Share(event); }

  cl_int FindReady(Session&, const WaitList&, UniqueCl<cl_event>*) override { return CL_SUCCESS; }
  void NoteTransfer(Session& session, std::shared_ptr<TransferEnd> end) override;
  void WhenReady(Session& session, WaitList list, const UniqueCl<cl_event>& ready,
                 std::function<void(cl_int status)> begin) override;

  cl_int LastEvent(Session& session, UniqueCl<cl_event>* last) override;
  bool IsIdle(Session&) override { return false; }

  // A barrier has not ended.
  bool IsBarred() const;
  // A command that the driver's queue does not know ends with this event.
  void NoteOwnCommand(UniqueCl<cl_event> event) { own_events_.Add(std::move(event)); }

 private:
  UniqueCl<cl_event> last_barrier_;
  OwnEvents own_events_;
};

}  // namespace sluice::worker
