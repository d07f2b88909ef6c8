// SPDX-License-Identifier: Apache-2.0
// A remote session's transport: one gRPC bidirectional stream to a gateway (proto/control.proto).
//
// gRPC's completion queue is polled by whoever waits, so that an answer wakes the application's own
// thread and no other: one thread at a time is the *poller*. With nobody waiting, the session's
// background thread polls, lazily: it leaves the queue alone for a moment after an application
// thread has waited, and between bursts of replies that nobody awaits.
//
// Where I/O ends with the thread that has begun it (broker/os/lasting_thread.h), the application's
// threads keep out of gRPC. A lasting thread, the *network thread*, opens the stream, writes, reads
// and polls until the session is lost (remote_network_thread.cc). Send and Wait wake it by gRPC's
// alarm, which is no I/O.
//
// Elsewhere:
//
//   Send   appends to the outbox. A lone call is written by the caller at once. A burst of them is
//          left to the writer thread, which writes all that has gathered every few microseconds. A
//          thread that begins to wait writes the rest.
//   Wait   polls, or waits until the poller has something for it.
//
// Owned by Session. Threads: as transport.h says. Nothing that comes in is trusted: pieces are
// checked here, as in a ring. Every lock is a leaf. gRPC is called with none held, but for mu_
// around the alarm that wakes the poller.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "broker/os/descriptor_identity.h"
#include "broker/os/lasting_thread.h"
#include "broker/os/threads.h"
#include "client_icd/remote/remote_outbox.h"
#include "client_icd/session/transport.h"
#include "proto/frame.h"
#include "proto/network/message_reader.h"

namespace sluice::client {

class RemoteTransport : public Transport {
 public:
  // Connects within `timeout` and opens a session.
  static absl::StatusOr<std::unique_ptr<RemoteTransport>> Connect(
      const std::string& endpoint, std::chrono::milliseconds timeout);
  ~RemoteTransport() override;

  bool Send(const wire::FrameHeader& header, std::string_view message, std::string_view payload,
            bool wake) override;
  bool Receive(wire::Frame* frame) override;
  bool HasFrame() const override;
  uint32_t Arm(wire::RingSleep state, uint64_t awaited_event) override;
  void Wait(uint32_t ticket, uint32_t bit) override;
  void Interrupt(uint32_t bits) override;
  bool lost() const override { return lost_.load(std::memory_order_acquire) || OutlivesThread(); }
  std::string lost_reason() const override;
  void Lose(std::string_view reason) override;
  void LoseInForkedChild() override;
  uint8_t* Map(const wire::BulkSpan&) override { return nullptr; }
  bool shares_memory() const override { return false; }
  uint64_t max_in_flight() const override { return max_in_flight_; }

 private:
  // A poller that nothing wakes looks this often whether the application has closed gRPC's
  // descriptors under it, which ends no poll.
  static constexpr int64_t kLookAgainNs = 1'000'000'000;
  static gpr_timespec After(int64_t nanoseconds);

  enum Tag : intptr_t { kStarted = 1, kRead, kWritten, kFinished, kKicked };

  // gRPC works on these. Leaked if it does not let go in time.
  struct Call {
    std::shared_ptr<grpc::Channel> channel;
    grpc::CompletionQueue queue;
    grpc::ClientContext context;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream;
    grpc::ByteBuffer incoming;
    grpc::Status status;
    grpc::Alarm kick;
    std::atomic<int> operations{0};  // Started and not yet returned by the queue.
    std::atomic<bool> started{false};
    std::atomic<bool> answered{false};  // The first message, or the end, has come.
  };

  explicit RemoteTransport(std::unique_ptr<Call> call) : call_(std::move(call)) {}
  void EndCall();  // Takes what comes back after Lose. The last that uses gRPC.

  // gRPC may not be touched any more (GrpcTrouble): the session is lost without it.
  bool Abandoned() const { return abandoned_.load(std::memory_order_acquire); }
  bool LoseIfTrouble();

  absl::Status Open(std::chrono::milliseconds timeout);
  absl::Status AwaitMessage(const std::atomic<bool>& there, std::chrono::milliseconds timeout,
                            const char* what);

  absl::StatusOr<bool> TakePiece(wire::Frame* frame);

  // Operations.
  void StartRead();
  void ReadOn();      // Starts a read if one is due.
  bool StartWrite();  // False: nothing to write, or a write is under way.
  void Flush();
  void Push();  // Flushes, or has the network thread do so, and read on.
  void Complete(void* tag, bool ok, bool by_poller);
  void OnRead(bool ok, bool by_poller);

  // Polling. Between TakeRoleLocked and LeaveRoleLocked this thread is the poller.
  void TakeRoleLocked(bool background) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LeaveRoleLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool PollOnce(gpr_timespec deadline);  // False: nothing happened until then.
  // Polls for so long, unless another thread is the poller.
  bool TryPoll(int64_t nanoseconds);
  bool SleepMayEnd(uint32_t ticket) const;
  int64_t HoldBackNs() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AwaitWaiterLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WakeSleepersLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void KickLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // The network thread.
  absl::Status StartNetworkThread(std::chrono::milliseconds timeout);
  void RunNetworkThread();
  void SleepUntilNews(uint32_t ticket, bool background);

  // Writing.
  void AwaitRoom();
  void RequestWriter();
  void RunWriter();

  // The process ends, and has no network thread any more.
  bool OutlivesThread() const { return has_network_thread_ && os::OtherThreadsWereEnded(); }

  const bool has_network_thread_ = os::IoEndsWithItsThread();
  std::unique_ptr<Call> call_;
  uint64_t max_in_flight_ = 0;  // Constant after Open.
  // The connection's, which a child of a fork must not keep: the daemon would see no end of the
  // session while it lives. Constant after Open.
  std::vector<os::DescriptorIdentity> sockets_;

  // Drain lock of CommandStream.
  wire::MessageReader reader_;
  bool reading_message_ = false;
  wire::FrameAssembler assembler_;

  std::atomic<bool> lost_{false};  // Release in Lose; pairs with the acquire in lost().
  std::atomic<bool> forked_{false};
  std::atomic<bool> abandoned_{false};  // Release in Lose; pairs with the acquire in Abandoned.
  std::atomic<uint32_t> bell_{0};
  std::atomic<uint32_t> sleep_state_{wire::kAwake};
  std::atomic<int> inbox_count_{
      0};  // Messages that Receive has not used up. Changed in OnRead and Receive.
  std::atomic<int64_t> brief_poll_ns_{0};
  std::atomic<int> looks_{0};  // HasFrame's calls since the last Wait.

  mutable absl::Mutex mu_;
  bool polling_ ABSL_GUARDED_BY(mu_) = false;
  bool poller_is_background_ ABSL_GUARDED_BY(mu_) = false;
  bool waiter_waits_ ABSL_GUARDED_BY(mu_) = false;       // In Wait: the role is to be its.
  uint64_t waits_ ABSL_GUARDED_BY(mu_) = 0;              // Of waiters, begun.
  bool waiter_is_awaited_ ABSL_GUARDED_BY(mu_) = false;  // By the background thread.
  bool kick_pending_ ABSL_GUARDED_BY(mu_) = false;
  int64_t last_waiter_ns_ ABSL_GUARDED_BY(mu_) = 0;  // When a waiter last left.
  int64_t last_background_ns_ ABSL_GUARDED_BY(mu_) =
      0;  // When the background thread last found something.
  std::string lost_reason_ ABSL_GUARDED_BY(mu_);
  bool waiter_sleeps_ ABSL_GUARDED_BY(mu_) = false;  // In SleepUntilNews.
  bool network_thread_runs_ ABSL_GUARDED_BY(mu_) = false;
  bool network_thread_ends_ ABSL_GUARDED_BY(mu_) = false;  // Takes no more kicks.
  absl::CondVar waiter_wake_;
  absl::CondVar background_wake_;

  absl::Mutex in_mu_;
  std::deque<grpc::ByteBuffer> inbox_ ABSL_GUARDED_BY(in_mu_);
  size_t inbox_bytes_ ABSL_GUARDED_BY(in_mu_) = 0;
  // No read is under way. Starting one makes gRPC tell the peer at once how much it has taken,
  // which an application's thread that has its answer should not have to wait for: the next one to
  // wait does it.
  std::atomic<bool> read_due_{false};  // Set by OnRead; whoever clears it starts the read.

  RemoteOutbox outbox_;
  std::atomic<int64_t> last_send_ns_{0};
  std::atomic<int> burst_{0};  // Sends in quick succession since someone waited.
  std::atomic<bool> writer_busy_{false};
  absl::Mutex writer_mu_;
  absl::CondVar writer_wake_;
  bool writer_requested_ ABSL_GUARDED_BY(writer_mu_) = false;
  bool writer_runs_ ABSL_GUARDED_BY(writer_mu_) = false;
  bool writer_stops_ ABSL_GUARDED_BY(writer_mu_) = false;
};

}  // namespace sluice::client
