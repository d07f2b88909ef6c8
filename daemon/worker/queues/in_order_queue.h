// SPDX-License-Identifier: Apache-2.0
// A queue in order. A command waits for the one before it by its place, so the newest event stands
// for all that was enqueued. Commands that nobody asks about have no event of their own (*unmarked*);
// what they carry goes with the next that has one. The driver's queue does not know a transfer
// (memory/transfers.h): a barrier stands for it there once something is enqueued behind it.
//
// A *mark* is an event behind the newest command: a marker's, or that of a write of four bytes where
// kernels end late (DriverQuirks::kernels_end_late). There Poll asks for marks alone: asking for a
// kernel's event would make it wait for other queues.
//
// Session thread only.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "daemon/worker/queues/queue.h"

namespace sluice::worker {

class InOrderQueue final : public QueueObject {
 public:
  explicit InOrderQueue(Quota* quota) : QueueObject(/*in_order=*/true, quota) {}

  cl_int PrepareCommand(Session& session, bool after_all) override;
  bool CanRun(bool after_all) override;
  bool RunsUnheld() override;
  bool NeedsAList() const override { return false; }
  cl_int EnqueueBarrier(Session& session, WaitList* list) override;
  void AddGuardsTo(Guards* guards) override;

  bool MayLeaveUnmarked(bool carries) const override;
  void LeaveUnmarked(std::unique_ptr<Carried> carried) override;
  std::unique_ptr<Carried> CollectUnmarked(std::unique_ptr<Carried> carried) override;
  void NoteGuards(const Guards& guards) override { guards_.Add(guards); }
  bool NoteEnqueued(Session& session, cl_event event, absl::Span<const cl_event> waits,
                    bool can_run) override;
  void NoteNewest(UniqueCl<cl_event> event, bool ends_late) override {
    last_event_ = std::move(event);
    newest_ends_late_ = ends_late;
  }
  void NoteBarrier(cl_event) override {}  // By its place, as all.
  bool EndsWithLater() const override { return device->quirks.faults_end_contexts; }
  bool MarksByWrites() const override { return device->quirks.kernels_end_late; }

  cl_int FindReady(Session& session, const WaitList& list, UniqueCl<cl_event>* ready) override;
  void NoteTransfer(Session& session, std::shared_ptr<TransferEnd> end) override;
  void WhenReady(Session& session, WaitList list, const UniqueCl<cl_event>& ready,
                 std::function<void(cl_int status)> begin) override;

  cl_int LastEvent(Session& session, UniqueCl<cl_event>* last) override;
  cl_int Mark(Session& session) override;
  bool HoldsUnmarked() const override { return !unmarked_carried_.empty(); }
  bool IsIdle(Session& session) override;

 private:
  bool TransferIsUnderWay() const;
  cl_int EnqueueMark(UniqueCl<cl_event>* mark);

  UniqueCl<cl_event> last_event_;  // Of the newest command that has one,
  bool newest_ends_late_ = false;  // which ends late (CompletionOrder).
  bool unmarked_ = false;          // Newer ones have none.
  UniqueCl<cl_mem> marked_;        // Marks write to it.
  std::vector<std::unique_ptr<Carried>> unmarked_carried_;
  UniqueCl<cl_event> last_waiting_;  // The newest with a list, if that may not have ended.
  UniqueCl<cl_event> last_stuck_;    // The newest that may wait for somebody else (turn_gate.h).
  UniqueCl<cl_event> held_;          // The newest with a list, if it may still wait (KeptEvents).
  std::shared_ptr<TransferEnd> transfer_;  // Newer than all that the driver's queue knows.
  Guards guards_;                          // Of all that was enqueued.
};

}  // namespace sluice::worker
