// SPDX-License-Identifier: Apache-2.0
#include "daemon/gateway/stream_session.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "broker/base/log.h"
#include "broker/base/peer_version.h"
#include "broker/os/close_elsewhere.h"
#include "broker/os/lasting_thread.h"
#include "broker/os/local_socket.h"
#include "daemon/gateway/server.h"
#include "proto/control.pb.h"
#include "proto/handle_messages.h"
#include "proto/status_macros.h"

namespace sluice::gateway {
namespace {

// From the stream's beginning to its `open`.
constexpr std::chrono::seconds kOpenTimeout(10);
constexpr absl::Duration kBrokerTimeout = absl::Seconds(30);
constexpr int kRingOfferTimeoutMs = 30'000;
// A client that has no worker any more may take so long to read the rest. By not opening its
// flow-control window it could keep a session's slot, thread and rings for good.
constexpr absl::Duration kLastWordsTimeout = absl::Seconds(10);
// The rings' bells are in memory that the worker can write: a sleeper looks again this often,
// whatever they say.
constexpr int64_t kReplySleepNs = 1'000'000'000;
constexpr int64_t kRoomSleepNs = 100'000'000;

grpc::Status ToGrpcStatus(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

// Takes the next message of the handle channel, checked for form. kAborted: end of file.
absl::StatusOr<wire::HandleMessage> ReceiveHandleMessage(int channel,
                                                         std::vector<os::UniqueFd>* fds) {
  wire::HandleMessage message;
  ASSIGN_OR_RETURN(const size_t bytes,
                   os::ReceiveMessage(channel, &message, sizeof(message), fds, 2));
  if (bytes == 0) return absl::AbortedError("the session's worker has ended");
  if (bytes != sizeof(message) || message.magic != wire::kHandleMagic) {
    return absl::InternalError("the worker sent a handle message that is none");
  }
  return message;
}

absl::StatusOr<os::SharedMapping> MapRing(const os::UniqueFd& fd) {
  RETURN_IF_ERROR(os::VerifySharedMemory(fd.get(), wire::kRingFileBytes));
  return os::SharedMapping::Map(fd.get(), wire::kRingFileBytes, /*writable=*/true);
}

}  // namespace

void StreamSession::AcceptNext(GatewayServer* server) {
  const auto session = std::make_shared<StreamSession>(server);
  session->context_.AsyncNotifyWhenDone(session->done_op_.Start(session));
  server->service().RequestStream(&session->context_, &session->stream_, server->queue(),
                                  server->queue(), session->accept_op_.Start(session));
}

StreamSession::~StreamSession() {
  os::CloseElsewhere(
      std::move(channel_));  // Which the worker may have filled with whatever it likes.
  if (counted_) server_->sessions().Leave();
}

void StreamSession::OnAccepted(bool ok) {
  if (!ok) {  // The server is stopping.
    done_op_.Drop();
    return;
  }
  AcceptNext(server_);
  if (!place_.Take(&server_->calls(), context_.peer())) return context_.TryCancel();
  const AdmittedPeer admitted = server_->front().PeerOf(context_);
  const absl::StatusOr<std::string> peer =
      server_->authenticator()->Authenticate(admitted, context_, &terms_);
  if (!peer.ok()) {
    LogRefused(admitted, peer.status());
    return End(peer.status());
  }
  if (!server_->front().Known(context_))
    return End(absl::ResourceExhaustedError("the gateway has as many connections as it can serve"));
  peer_ = *peer;
  counted_ = server_->sessions().Enter();
  if (!counted_)
    return End(absl::ResourceExhaustedError("the gateway has as many sessions as it can serve"));
  open_timer_.Set(server_->queue(), std::chrono::system_clock::now() + kOpenTimeout,
                  timer_op_.Start(shared_from_this()));
  StartRead();
}

void StreamSession::OnOpenTimeout(bool ok) {
  if (!ok) return;  // Cancelled.
  {
    absl::MutexLock lock(&mu_);
    if (opened_) return;
  }
  End(absl::DeadlineExceededError("the stream's first message did not come in time"));
}

void StreamSession::OnCallDone(bool) { End(absl::CancelledError("the client has gone")); }

void StreamSession::StartRead() { stream_.Read(&incoming_, read_op_.Start(shared_from_this())); }

void StreamSession::OnRead(bool ok) {
  if (!ok) return End(absl::OkStatus());  // The client has said all it has to say.
  const bool readable = reader_.Reset(incoming_);
  incoming_.Clear();
  if (!readable) return End(absl::InvalidArgumentError("a message that cannot be read"));
  if (commands_.has_value()) return ForwardCommands();
  if (!TakeOpen()) return;
  if (!StartThread()) End(absl::ResourceExhaustedError("the gateway can have no more threads"));
}

bool StreamSession::StartThread() {
  absl::MutexLock lock(&mu_);
  opened_ = true;
  if (ended()) return true;
  thread_started_ = os::StartOnLastingThread([self = shared_from_this()] { self->Run(); });
  return thread_started_;
}

bool StreamSession::TakeOpen() {
  uint32_t field = 0;
  v1::OpenSession open;
  if (reader_.NextField(&field) != wire::MessageReader::Step::kField || field != wire::kOpenField ||
      !open.ParseFromString(reader_.Rest())) {
    End(absl::InvalidArgumentError("a stream's first message must be `open`"));
    return false;
  }
  if ((open.flags() & ~wire::kOpenSessionKnownFlags) != 0) {
    End(absl::InvalidArgumentError(
        absl::StrCat("unknown session flags ", open.flags(), "; ",
                     VersionAdvice("daemon", "client", VersionAmong(open.features())))));
    return false;
  }
  open_timer_.Cancel();
  process_name_ = open.process_name();
  flags_ = open.flags();
  told_version_ = !VersionAmong(open.features()).empty();
  return true;
}

void StreamSession::ForwardCommands() {
  while (!ended()) {
    if (!in_pieces_) {
      uint32_t field = 0;
      const wire::MessageReader::Step step = reader_.NextField(&field);
      if (step == wire::MessageReader::Step::kEnd) {
        commands_->Notify();
        return StartRead();
      }
      if (step == wire::MessageReader::Step::kMalformed)
        return End(absl::InvalidArgumentError("a message that is none"));
      if (field != wire::kPiecesField) continue;
      in_pieces_ = true;
    }
    const absl::StatusOr<CommandForwarder::Outcome> outcome = commands_->Forward(&reader_);
    if (!outcome.ok()) return End(outcome.status());
    if (*outcome == CommandForwarder::Outcome::kRingFull) {
      commands_->Notify();
      if (StartFeeder()) return;
      return End(absl::ResourceExhaustedError("the gateway can have no more threads"));
    }
    in_pieces_ = false;
  }
}

bool StreamSession::StartFeeder() {
  absl::MutexLock lock(&mu_);
  ring_full_ = true;
  changed_.SignalAll();
  if (has_feeder_ || ended()) return true;
  has_feeder_ = os::StartOnLastingThread([self = shared_from_this()] { self->RunFeeder(); });
  return has_feeder_;
}

void StreamSession::RunFeeder() {
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      while (!ring_full_ && !ended()) changed_.Wait(&mu_);
      if (ended()) {
        has_feeder_ = false;
        changed_.SignalAll();
        return;
      }
      ring_full_ = false;
    }
    commands_->WaitForRoom(kRoomSleepNs);
    if (!ended()) ForwardCommands();
  }
}

bool StreamSession::OnReadable() {
  std::vector<os::UniqueFd> fds;
  const absl::StatusOr<wire::HandleMessage> message = ReceiveHandleMessage(channel_.get(), &fds);
  absl::Status status = message.status();
  if (status.ok() && (message->type != wire::HandleMessageType::kHeapSegment || fds.size() != 1)) {
    status = absl::InternalError("the worker sent a handle message that is no heap segment");
  }
  if (status.ok()) status = heap_.Add(message->segment, std::move(fds[0]), message->size);
  if (status.ok()) return true;
  os::CloseElsewhere(std::move(fds));  // This thread is every session's.
  heap_.End();
  // Its last words are still in the ring; the session thread sends them first.
  worker_gone_.store(true, std::memory_order_release);
  {
    absl::MutexLock lock(&mu_);
    LimitWritesLocked();
  }
  if (!absl::IsAborted(status)) End(status);
  replies_->Wake();
  return false;
}

void StreamSession::Run() {
  absl::Status status = OpenSession();
  if (status.ok()) {
    Log(LogLevel::kInfo, "gateway", "session opened",
        {{"session", HexId(session_id_)}, {"peer", peer_}, {"process", process_name_}});
    if (terms_.has_value()) {
      Log(LogLevel::kInfo, "gateway", "session's token",
          {{"session", HexId(session_id_)},
           {"nonce", terms_->nonce},
           {"expires", terms_->expires}});
    }
    status = RunReplies();
  }
  if (!absl::IsCancelled(status)) End(status);
  // Also when the client left before there were rings: ends the worker, and the link's interest in
  // us. A worker that does not look is the broker's to end.
  if (channel_.valid()) {
    os::HangUp(channel_.get());
    server_->link().CloseSession(session_id_);
  }
  AwaitWritten();
  absl::Status reason;
  {
    absl::MutexLock lock(&mu_);
    reason = reason_;
    while (has_feeder_) changed_.Wait(&mu_);
  }
  const bool clean = reason.ok() || absl::IsCancelled(reason);
  std::string why = clean ? "the client left" : std::string(reason.message());
  // Its client, which is told so, leaves then, and may be seen to do so before the worker is.
  if (reply_forwarder_.has_value() && !reply_forwarder_->last_words().empty())
    why = absl::StrCat("the worker ended it: ", reply_forwarder_->last_words());
  Log(clean ? LogLevel::kInfo : LogLevel::kWarning, "gateway", "session ended",
      {{"session", HexId(session_id_)}, {"peer", peer_}, {"reason", why}});
  Finish();
}

absl::Status StreamSession::OpenSession() {
  ASSIGN_OR_RETURN(
      BrokerLink::Session session,
      server_->link().OpenSession(flags_, peer_, process_name_, kBrokerTimeout, terms_));
  session_id_ = session.id;
  max_in_flight_ = session.max_in_flight;
  channel_ = std::move(session.channel);
  RETURN_IF_ERROR(TakeRings());
  RETURN_IF_ERROR(server_->link().Watch(shared_from_this()));
  {
    absl::MutexLock lock(&mu_);
    ring_ready_ = true;
    if (ended()) return absl::CancelledError("the client has gone");
  }
  SendOpened();
  StartRead();
  return absl::OkStatus();
}

absl::Status StreamSession::TakeRings() {
  const absl::Status there = os::WaitReadable(channel_.get(), kRingOfferTimeoutMs);
  if (!there.ok()) return absl::UnavailableError("the session's worker did not start in time");
  std::vector<os::UniqueFd> fds;
  const absl::StatusOr<wire::HandleMessage> offer = ReceiveHandleMessage(channel_.get(), &fds);
  if (!offer.ok() || offer->type != wire::HandleMessageType::kRingOffer || fds.size() != 2 ||
      offer->size != wire::kRingFileBytes) {
    return absl::UnavailableError(
        "the session's worker ended before it could say why: its driver crashed, perhaps");
  }
  ASSIGN_OR_RETURN(command_memory_, MapRing(fds[0]));
  ASSIGN_OR_RETURN(reply_memory_, MapRing(fds[1]));
  commands_.emplace(command_memory_.data(), &grants_);
  replies_.emplace(reply_memory_.data());
  reply_forwarder_.emplace(&heap_, &grants_,
                           [this](OutgoingPieces* pieces) { return SendCollected(pieces); });
  return absl::OkStatus();
}

void StreamSession::SendOpened() {
  v1::ServerMessage message;
  message.mutable_opened()->set_session_id(session_id_);
  message.mutable_opened()->set_max_in_flight_commands(max_in_flight_);
  if (told_version_) message.mutable_opened()->add_features(VersionFeature());
  const std::string bytes = message.SerializeAsString();
  const grpc::Slice slice(bytes);
  Write(grpc::ByteBuffer(&slice, 1));
}

absl::Status StreamSession::RunReplies() {
  while (!ended()) {
    const bool last_look = worker_gone_.load(std::memory_order_acquire);
    RETURN_IF_ERROR(DrainReplies());
    if (reply_forwarder_->collected().bytes() > 0) {
      if (!SendCollected(&reply_forwarder_->collected()))
        return absl::CancelledError("the client has gone");
      continue;
    }
    if (last_look) return absl::UnavailableError("the session's worker has ended");
    SleepForReplies();
  }
  return absl::CancelledError("the session is over");
}

absl::Status StreamSession::DrainReplies() {
  wire::PieceHeader piece;
  std::string body;
  while (!ended()) {
    ASSIGN_OR_RETURN(const bool got, replies_->Next(&piece, &body));
    if (!got) return absl::OkStatus();
    RETURN_IF_ERROR(reply_forwarder_->Forward(piece, &body));
  }
  return absl::OkStatus();
}

void StreamSession::SleepForReplies() {
  if (spin_.Until([this] { return replies_->HasPiece(); })) return;
  const uint32_t ticket = replies_->Arm();
  if (!ended() && !worker_gone_.load(std::memory_order_acquire))
    replies_->Wait(ticket, kReplySleepNs);
  replies_->Disarm();
}

bool StreamSession::SendCollected(OutgoingPieces* pieces) { return Write(pieces->Take()); }

// Sends one message, after the one before has gone out.
bool StreamSession::Write(const grpc::ByteBuffer& message) {
  AwaitWritten();
  {
    absl::MutexLock lock(&mu_);
    if (write_failed_ || ended()) return false;
    writing_ = true;
  }
  void* const tag = write_op_.Start(shared_from_this());
  RunHere(server_->queue(), [&] { stream_.Write(message, tag); });
  server_->front().SendNow(context_);
  return true;
}

void StreamSession::AwaitWritten() {
  {
    absl::MutexLock lock(&mu_);
    while (writing_ && !changed_.WaitWithDeadline(&mu_, give_up_writing_)) {
    }
    if (!writing_) return;
  }
  context_.TryCancel();
  absl::MutexLock lock(&mu_);
  while (writing_) changed_.Wait(&mu_);
}

void StreamSession::LimitWritesLocked() {
  give_up_writing_ = std::min(give_up_writing_, absl::Now() + kLastWordsTimeout);
  changed_.SignalAll();
}

void StreamSession::OnWritten(bool ok) {
  absl::MutexLock lock(&mu_);
  writing_ = false;
  if (!ok) write_failed_ = true;
  changed_.SignalAll();
}

void StreamSession::End(const absl::Status& reason) {
  bool finish = false;
  {
    absl::MutexLock lock(&mu_);
    if (ended()) return;
    reason_ = reason;
    ended_.store(true, std::memory_order_release);
    finish = !thread_started_;
    LimitWritesLocked();
    if (ring_ready_) {
      os::HangUp(channel_.get());
      replies_->Wake();
      commands_->WakeWriter();
    }
  }
  open_timer_.Cancel();
  if (finish) Finish();
}

void StreamSession::Finish() {
  grpc::Status status;
  {
    absl::MutexLock lock(&mu_);
    status = ToGrpcStatus(reason_);
  }
  stream_.Finish(status, finish_op_.Start(shared_from_this()));
}

}  // namespace sluice::gateway
