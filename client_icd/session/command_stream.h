// SPDX-License-Identifier: Apache-2.0
// The stream of commands to the worker and of its replies. Whoever waits for something drains the
// replies itself: the first application thread that waits becomes the holder and sleeps at the
// reply ring; later ones sleep here and are handed that role when it leaves. With nobody waiting,
// the session's reply thread looks after the ring, lazily.
//
// Owned by Session; thread-safe. While frames are handled (under drain_mu_) no callback of the
// application runs. Lock order: drain_mu_, an event's mutex, send_mu_, pending_mu_; wait_mu_ is a
// leaf. Replies are from the peer: what cannot be right loses the session, what is merely unknown
// is ignored.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "client_icd/base/fork_locks.h"
#include "client_icd/base/object.h"
#include "client_icd/session/pending_command.h"
#include "client_icd/session/transport.h"
#include "proto/command.pb.h"
#include "proto/spin.h"

namespace sluice::client {

namespace pb = v1;

class Session;

// A Command on this thread's arena: one per entry point, on the stack. Valid until it goes out of
// scope; may nest.
class ScopedCommand {
 public:
  ScopedCommand();
  ~ScopedCommand();
  ScopedCommand(const ScopedCommand&) = delete;
  ScopedCommand& operator=(const ScopedCommand&) = delete;

  pb::Command& operator*() const { return *command_; }
  pb::Command* operator->() const { return command_; }

 private:
  pb::Command* command_;
};

class CommandStream {
 public:
  CommandStream(Session* session, Transport* transport);
  ~CommandStream();
  CommandStream(const CommandStream&) = delete;
  CommandStream& operator=(const CommandStream&) = delete;

  // For commands whose reply mode is None or Deferred. False: the session is lost.
  bool Post(const pb::Command& command, std::string_view payload = {});
  // As Post, but the worker need not look at it before the next command: releases of events,
  // flushes.
  bool PostQuietly(const pb::Command& command);

  // For commands whose reply mode is Answer: sends, waits, and returns the answer's status, or
  // the session's lost_code if it was lost meanwhile. `answer` may be null.
  cl_int Call(const pb::Command& command, std::string_view payload, pb::Answer* answer);

  // From now until it ends, `command` is found by its id, and its owner kept. Before it is posted.
  // False: the session is lost.
  bool Track(PendingCommand* command);
  // Takes it back: it could not be posted, or it is a user event that needs no more looking after.
  // False: it has ended, or is being ended by the loss of the session.
  bool Untrack(const PendingCommand* command);
  // The events of those that have not ended.
  std::vector<Ref<Object>> Pending() ABSL_LOCKS_EXCLUDED(pending_mu_);

  // How often calls of the application have waited for the worker, and how long in all: for the
  // log, which with SLUICE_LOG=debug has each, and for tests.
  struct Waits {
    uint64_t answers = 0;   // Call.
    uint64_t commands = 0;  // WaitFor, of what had not ended yet.
    int64_t ns = 0;
  };
  Waits waits() const;

  // Waits until the command has ended, and returns its status: CL_COMPLETE or an error.
  cl_int WaitFor(PendingCommand* command);
  // Waits for a thread that handles replies at this moment: it may hold what it has ended a little
  // longer than who waited for that.
  void AwaitHandled() ABSL_LOCKS_EXCLUDED(drain_mu_);
  // True if this thread is handling replies, of whatever session: objects that it releases must not
  // wait for the application, which may wait for the reply.
  static bool HandlesHere();
  // It is, as long as this lives.
  class Handling {
   public:
    Handling();
    ~Handling();
  };
  // Handles what is there, without waiting: for status queries.
  void Poll();

  // An event ended without a frame (a user event): wakes who waits for it.
  void WakeWaiters();
  // Callbacks are registered on a pending event, or have been queued: while there are any, replies
  // are handled at once.
  void AddEager();
  void DropEager();

  // The session works with a device beside the processor: waits look longer before they sleep.
  void ExpectDevice() { spin_.BePatient(); }

  // Before a fork: until the locks are let go of, no frame is handled.
  void HoldForFork(ForkLocks* locks, absl::Time deadline);

  // The reply thread's whole life: ends when the session is lost.
  void RunReplyThread();

 private:
  struct ReplyArena;
  struct PendingCall {
    pb::Answer* answer;
    cl_int status;
    std::atomic<bool> done{false};  // Release in FinishCall; pairs with the acquires in WaitUntil.
  };
  // A command, and what keeps it.
  struct Tracked {
    Ref<Object> owner;
    PendingCommand* command = nullptr;

    explicit operator bool() const { return command != nullptr; }
    PendingCommand* operator->() const { return command; }
    PendingCommand& operator*() const { return *command; }
  };
  // One per waiting thread, on its stack.
  struct Waiter {
    const std::atomic<bool>* done;
    uint64_t event_id;  // 0: waits for an answer.
    absl::CondVar wake;
  };

  void NoteWait(std::atomic<uint64_t>* count, int64_t began_ns, const char* what);
  bool Send(const pb::Command& command, std::string_view payload, uint32_t flags,
            const wire::BulkSpan& bulk, bool wake, PendingCall* call);

  // Waiting.
  void WaitUntil(const std::atomic<bool>& done, uint64_t event_id);
  void Sleep(uint32_t ticket, int64_t began_ns);
  void Hold(Waiter* self);
  void Leave(Waiter* self);
  uint32_t RearmLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(wait_mu_);
  void Rearm() ABSL_LOCKS_EXCLUDED(wait_mu_);
  void SignalDone(const Waiter* self);
  // Fails everything that is pending, once, after the transport was lost.
  void FailAll();

  // Replies (reply_handler.cc). Drain takes and handles all frames that are there; `self` waits
  // itself, or is null.
  void Drain(const Waiter* self);
  void TakeFrame() ABSL_EXCLUSIVE_LOCKS_REQUIRED(drain_mu_);  // Handles frame_.
  void Handle(const wire::Frame& frame, const pb::Reply& reply)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(drain_mu_);
  void HandleAnswer(const pb::Answer& answer);
  void HandleCompletion(const pb::Completion& completion, std::string_view payload);
  void HandleLateError(const pb::LateError& error);
  void HandleGrant(const pb::Grant& grant, const wire::BulkSpan& bulk);
  void HandleReadData(const pb::ReadData& data, const wire::BulkSpan& bulk,
                      std::string_view payload);
  void SendChunks(const PendingCommand& event, const pb::Grant& grant);
  void HandleLastWords() ABSL_EXCLUSIVE_LOCKS_REQUIRED(drain_mu_);
  static void Print(const pb::Printed& printed);
  static void FinishCall(PendingCall* call, cl_int status);
  Tracked FindPending(uint64_t event_id);
  Tracked TakePending(uint64_t event_id);

  Session* const session_;
  Transport* const transport_;

  absl::Mutex drain_mu_;
  wire::Frame frame_ ABSL_GUARDED_BY(drain_mu_);
  const std::unique_ptr<ReplyArena> arena_ ABSL_PT_GUARDED_BY(drain_mu_);

  absl::Mutex send_mu_ ABSL_ACQUIRED_AFTER(drain_mu_);
  uint64_t next_sequence_ ABSL_GUARDED_BY(send_mu_) = 1;

  absl::Mutex pending_mu_ ABSL_ACQUIRED_AFTER(send_mu_);
  absl::flat_hash_map<uint64_t, Tracked> pending_events_ ABSL_GUARDED_BY(pending_mu_);
  absl::flat_hash_map<uint64_t, PendingCall*> pending_calls_ ABSL_GUARDED_BY(pending_mu_);
  bool failed_all_ ABSL_GUARDED_BY(pending_mu_) = false;

  absl::Mutex wait_mu_;
  std::vector<Waiter*> waiters_ ABSL_GUARDED_BY(wait_mu_);
  Waiter* holder_ ABSL_GUARDED_BY(wait_mu_) = nullptr;
  int eager_ ABSL_GUARDED_BY(wait_mu_) = 0;
  bool background_parked_ ABSL_GUARDED_BY(wait_mu_) = false;
  absl::CondVar background_wake_;
  // The size of waiters_, so that draining with nobody else waiting takes no lock. Changed under
  // wait_mu_; ordered against the `done` flags by sequentially consistent fences on both sides.
  std::atomic<size_t> waiter_count_{0};

  // Relaxed.
  std::atomic<uint64_t> waited_answers_{0};
  std::atomic<uint64_t> waited_commands_{0};
  std::atomic<int64_t> waited_ns_{0};

  wire::AdaptiveSpin spin_;  // Of the holder, before it sleeps.
};

}  // namespace sluice::client
