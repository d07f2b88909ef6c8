// SPDX-License-Identifier: Apache-2.0
//
// One network session: a gRPC stream on one side, a worker's rings and handle channel on the other.
//
//   poller thread     reads the stream, and writes what came straight into the command ring
//   session thread    opens the session with the broker, then takes the reply ring's pieces and
//                     writes the stream
//   feeder thread     only while the command ring is full: waits for room; meanwhile nothing is
//                     read from the stream
//   link thread       sees the handle channel: heap segments, and the worker's end
//
//   accept -> await `open` -> (session thread) opening -> running -> ending -> Finish -> gone
//
// Nothing grows without bound: one message is read at a time, one is written at a time, and what
// the worker says waits in its ring. The end of the stream ends the worker and the other way round;
// nobody else notices either. Its threads last (lasting_thread.h), since they write to connections
// that other sessions use too.
//
// Owner: itself, by shared pointers that its operations and threads hold.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "broker/os/shared_memory.h"
#include "daemon/gateway/broker_link.h"
#include "daemon/gateway/command_forwarder.h"
#include "daemon/gateway/connection_calls.h"
#include "daemon/gateway/grant_table.h"
#include "daemon/gateway/heap_map.h"
#include "daemon/gateway/operation.h"
#include "daemon/gateway/reply_forwarder.h"
#include "daemon/gateway/reply_ring.h"
#include "proto/network/message_reader.h"
#include "proto/spin.h"

namespace sluice::gateway {

class GatewayServer;

class StreamSession : public Watched, public std::enable_shared_from_this<StreamSession> {
 public:
  // Waits for the next stream that a client opens, and serves it.
  static void AcceptNext(GatewayServer* server);
  explicit StreamSession(GatewayServer* server) : server_(server) {}
  ~StreamSession() override;

  // Watched: the handle channel.
  int fd() const override { return channel_.get(); }
  bool OnReadable() override;

 private:
  using Op = CallOperation<StreamSession>;

  // Operations' ends; any poller thread, one of each kind at a time.
  void OnAccepted(bool ok);
  void OnRead(bool ok);
  void OnWritten(bool ok);
  void OnOpenTimeout(bool ok);
  void OnCallDone(bool ok);
  void OnFinished(bool) {}

  // The stream's first message. False: it is no proper `open`.
  bool TakeOpen();
  // Passes on what `reader_` holds, from wherever it stopped, then reads on.
  void ForwardCommands();
  void StartRead();
  // False: the system has no thread to give.
  bool StartThread();
  bool StartFeeder();

  // Session thread.
  void Run();
  absl::Status OpenSession();
  absl::Status TakeRings();
  void SendOpened();
  absl::Status RunReplies();
  absl::Status DrainReplies();
  bool SendCollected(OutgoingPieces* pieces);
  bool Write(const grpc::ByteBuffer& message);
  // Until the message before has gone out, or the client has had its time to take it.
  void AwaitWritten();
  void SleepForReplies();

  void RunFeeder();

  // The first reason counts. Whoever has nothing else to do then finishes the call.
  void End(const absl::Status& reason);
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  void Finish();
  // There is no worker any more, or soon will be none.
  void LimitWritesLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  GatewayServer* const server_;
  ConnectionCalls::Place place_;
  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> stream_{&context_};
  grpc::Alarm open_timer_;
  Op accept_op_{&StreamSession::OnAccepted};
  Op read_op_{&StreamSession::OnRead};
  Op write_op_{&StreamSession::OnWritten};
  Op timer_op_{&StreamSession::OnOpenTimeout};
  Op done_op_{&StreamSession::OnCallDone};
  Op finish_op_{&StreamSession::OnFinished};
  bool counted_ = false;  // Among the server's sessions.

  // Set before the session thread starts.
  std::string peer_;
  std::optional<wire::TokenTerms> terms_;
  std::string process_name_;
  uint32_t flags_ = 0;
  bool told_version_ = false;  // So it is told ours.

  // Set by the session thread before it starts the first read.
  uint64_t session_id_ = 0;
  uint64_t max_in_flight_ = 0;
  os::UniqueFd channel_;
  os::SharedMapping command_memory_;
  os::SharedMapping reply_memory_;
  std::optional<CommandForwarder> commands_;
  std::optional<ReplyRing> replies_;

  HeapMap heap_;
  GrantTable grants_;

  // Whoever forwards commands: a poller thread, or the feeder, never both.
  grpc::ByteBuffer incoming_;
  wire::MessageReader reader_;
  bool in_pieces_ = false;

  // Session thread only.
  std::optional<ReplyForwarder> reply_forwarder_;
  wire::AdaptiveSpin spin_;

  std::atomic<bool> ended_{false};  // Release in End; pairs with the acquire in ended().
  std::atomic<bool> worker_gone_{false};
  absl::Mutex mu_;
  absl::CondVar changed_;
  absl::Status reason_ ABSL_GUARDED_BY(mu_);
  bool opened_ ABSL_GUARDED_BY(mu_) = false;          // An `open` came: the timer counts no more.
  bool thread_started_ ABSL_GUARDED_BY(mu_) = false;  // The session thread will call Finish.
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool write_failed_ ABSL_GUARDED_BY(mu_) = false;
  absl::Time give_up_writing_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  bool ring_full_ ABSL_GUARDED_BY(mu_) = false;   // The feeder has work.
  bool ring_ready_ ABSL_GUARDED_BY(mu_) = false;  // commands_ and replies_ exist.
  bool has_feeder_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace sluice::gateway
