// SPDX-License-Identifier: Apache-2.0
#include "client_icd/remote/remote_transport.h"

#include <errno.h>
#include <time.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/base/peer_version.h"
#include "broker/os/this_process.h"
#include "client_icd/connect/sync_mode.h"
#include "client_icd/remote/remote_channel.h"
#include "proto/spin.h"
#include "proto/status_macros.h"

namespace sluice::client {
namespace {

constexpr char kStreamMethod[] = "/sluice.v1.Session/Stream";
// OpenSession's fields.
constexpr uint32_t kOpenFeaturesField = 1;
constexpr uint32_t kOpenProcessNameField = 2;
constexpr uint32_t kOpenFlagsField = 3;
// A worker loads its driver first, which takes a while on a busy machine.
constexpr std::chrono::milliseconds kOpenTimeout(60'000);
constexpr absl::Duration kCloseTimeout = absl::Seconds(2);

constexpr size_t kMaxInboxBytes = 16 << 20;
// After an application thread has waited, it will probably wait again soon: the background thread
// stays away.
constexpr int64_t kAfterWaiterNs = 1'000'000;
// Replies that nobody awaits are taken in batches.
constexpr int64_t kBetweenBatchesNs = 300'000;
// How long the background thread looks away while an application thread polls, before it has itself
// woken at the end of that wait: short ones, one after the other, need not wake it each.
constexpr absl::Duration kWhileWaiterPolls = absl::Milliseconds(2);
constexpr int64_t kBetweenBriefPollsNs = 10'000;
// Looking this often without a wait is polling: by clGetEventInfo in a loop, or a spinning waiter.
constexpr int kPollingLooks = 4;

}  // namespace

gpr_timespec RemoteTransport::After(int64_t nanoseconds) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(nanoseconds, GPR_TIMESPAN));
}

absl::StatusOr<std::unique_ptr<RemoteTransport>> RemoteTransport::Connect(
    const std::string& endpoint, std::chrono::milliseconds timeout) {
  RETURN_IF_ERROR(PrepareGrpc());
  ASSIGN_OR_RETURN(const RemoteSecurity security,
                   ChooseSecurity(endpoint, os::EnvironmentVariable));
  auto call = std::make_unique<Call>();
  call->channel = MakeChannel(endpoint, security);
  Authorize(security, &call->context);
  std::unique_ptr<RemoteTransport> transport(new RemoteTransport(std::move(call)));
  const absl::Status opened = transport->has_network_thread_
                                  ? transport->StartNetworkThread(timeout)
                                  : transport->Open(timeout);
  if (!opened.ok()) {
    return absl::Status(opened.code(), absl::StrCat(endpoint, ": ", opened.message()));
  }
  return transport;
}

absl::Status RemoteTransport::Open(std::chrono::milliseconds timeout) {
  // The application may have connections of its own to the daemon.
  const std::vector<os::DescriptorIdentity> before = os::OpenSockets();
  call_->stream =
      grpc::GenericStub(call_->channel).PrepareCall(&call_->context, kStreamMethod, &call_->queue);
  call_->operations.fetch_add(1);
  call_->stream->StartCall(reinterpret_cast<void*>(kStarted));
  absl::Status connected = AwaitMessage(call_->started, timeout, "no connection");
  if (absl::IsDeadlineExceeded(connected) && os::HasNewConnection(before))
    connected = AwaitMessage(call_->started, kAnswerTimeout, "no handshake");
  RETURN_IF_ERROR(connected);
  std::string open;
  wire::AppendStringField(kOpenFeaturesField, VersionFeature(), &open);
  wire::AppendStringField(kOpenProcessNameField, os::ProcessName(), &open);
  if (WantsSync()) {
    wire::AppendVarint(uint64_t{kOpenFlagsField} << 3, &open);
    wire::AppendVarint(1, &open);
  }
  std::string message;
  wire::AppendStringField(wire::kOpenField, open, &message);
  const grpc::Slice slice(message);
  // One write at a time: the session may be open before this one is known to be over.
  outbox_.SetWriting();
  call_->operations.fetch_add(1);
  call_->stream->Write(grpc::ByteBuffer(&slice, 1), reinterpret_cast<void*>(kWritten));
  StartRead();
  RETURN_IF_ERROR(AwaitMessage(call_->answered, kOpenTimeout, "no session was opened"));

  absl::MutexLock lock(&in_mu_);
  uint32_t field = 0;
  if (inbox_.empty() || !reader_.Reset(inbox_.front()) ||
      reader_.NextField(&field) != wire::MessageReader::Step::kField || field != wire::kOpenField) {
    return absl::InvalidArgumentError("the daemon's first message is none that opens a session");
  }
  // SessionOpened.
  if (!wire::FindVarintField(reader_.Rest(), wire::kMaxInFlightField, &max_in_flight_)) {
    return absl::InvalidArgumentError("the daemon's opening of a session does not parse");
  }
  inbox_bytes_ -= inbox_.front().Length();
  inbox_.pop_front();
  inbox_count_.fetch_sub(1, std::memory_order_relaxed);
  sockets_ = os::SocketsConnectedTo(call_->context.peer(), before);
  return absl::OkStatus();
}

// Before anyone else uses the transport.
absl::Status RemoteTransport::AwaitMessage(const std::atomic<bool>& there,
                                           std::chrono::milliseconds timeout, const char* what) {
  const gpr_timespec deadline = After(std::chrono::nanoseconds(timeout).count());
  while (!there.load() && !lost()) {
    if (!PollOnce(deadline)) {
      return absl::DeadlineExceededError(absl::StrCat(what, " within ", timeout.count(), " ms"));
    }
  }
  if (!lost()) return absl::OkStatus();
  const bool over_a_limit = call_->status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED;
  return over_a_limit ? absl::ResourceExhaustedError(lost_reason())
                      : absl::UnavailableError(lost_reason());
}

RemoteTransport::~RemoteTransport() {
  if (OutlivesThread()) {
    static_cast<void>(call_.release());  // gRPC is not to be touched.
    return;
  }
  Lose("closed");
  if (has_network_thread_) {
    absl::MutexLock lock(&mu_);
    while (network_thread_runs_) waiter_wake_.Wait(&mu_);
    return;
  }
  {
    absl::MutexLock lock(&writer_mu_);
    writer_stops_ = true;
    writer_wake_.SignalAll();
    while (writer_runs_) writer_wake_.Wait(&writer_mu_);
  }
  EndCall();
}

void RemoteTransport::EndCall() {
  // The descriptors may have been closed since the session was lost.
  if (Abandoned() || GrpcTrouble() != nullptr) {
    static_cast<void>(call_.release());
    return;
  }
  // Everything has been cancelled and comes back at once, unless gRPC itself hangs.
  const absl::Time deadline = absl::Now() + kCloseTimeout;
  while (call_->operations.load() > 0 && absl::Now() < deadline) PollOnce(After(10'000'000));
  if (call_->operations.load() > 0) {
    static_cast<void>(call_.release());
    return;
  }
  call_->queue.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (call_->queue.Next(&tag, &ok)) {
  }
}

void RemoteTransport::Lose(std::string_view reason) {
  {
    absl::MutexLock lock(&mu_);
    if (lost_.load(std::memory_order_relaxed)) return;
    const char* const trouble = GrpcTrouble();
    lost_reason_ = trouble == nullptr ? std::string(reason) : trouble;
    abandoned_.store(trouble != nullptr, std::memory_order_release);
    lost_.store(true, std::memory_order_release);
  }
  if (!Abandoned() && !has_network_thread_) call_->context.TryCancel();
  Interrupt(wire::kBitWaiter | wire::kBitBackground);
}

std::string RemoteTransport::lost_reason() const {
  if (forked_.load(std::memory_order_relaxed)) return "the process has forked";
  if (OutlivesThread()) return "the process ends";
  absl::MutexLock lock(&mu_);
  return lost_reason_;
}

void RemoteTransport::LoseInForkedChild() {
  forked_.store(true, std::memory_order_relaxed);
  lost_.store(true, std::memory_order_release);
  // The daemon's end of file must come from the parent alone.
  for (const os::DescriptorIdentity& socket : sockets_) {
    if (os::IsStillThere(socket)) const os::UniqueFd closed(socket.fd);
  }
}

bool RemoteTransport::LoseIfTrouble() {
  if (!lost() && GrpcTrouble() != nullptr) Lose("gRPC is of no use any more");
  return Abandoned();
}

void RemoteTransport::StartRead() {
  call_->operations.fetch_add(1);
  call_->stream->Read(&call_->incoming, reinterpret_cast<void*>(kRead));
}

void RemoteTransport::ReadOn() {
  if (!read_due_.load(std::memory_order_acquire) || LoseIfTrouble() || lost()) return;
  {
    absl::MutexLock lock(&in_mu_);
    if (inbox_bytes_ >= kMaxInboxBytes) return;
  }
  if (read_due_.exchange(false, std::memory_order_acq_rel)) StartRead();
}

bool RemoteTransport::StartWrite() {
  grpc::Slice pieces;
  if (LoseIfTrouble() || lost() || !outbox_.Take(&pieces)) return false;
  std::string start;
  wire::AppendFieldHeader(wire::kPiecesField, pieces.size(), &start);
  const grpc::Slice slices[] = {grpc::Slice(start), pieces};
  const grpc::ByteBuffer message(slices, 2);
  call_->operations.fetch_add(1);
  void* tag = nullptr;
  bool ok = false;
  // Mostly the socket takes it all at once: then the operation is over here, and no thread need be
  // woken for that.
  const auto write = [&] { call_->stream->Write(message, reinterpret_cast<void*>(kWritten)); };
  if (call_->queue.DoThenAsyncNext(write, &tag, &ok, gpr_time_0(GPR_CLOCK_MONOTONIC)) ==
      grpc::CompletionQueue::GOT_EVENT) {
    Complete(tag, ok, /*by_poller=*/false);
  }
  return true;
}

void RemoteTransport::Flush() {
  while (StartWrite()) {
  }
}

void RemoteTransport::Complete(void* tag, bool ok, bool by_poller) {
  call_->operations.fetch_sub(1);
  switch (static_cast<Tag>(reinterpret_cast<intptr_t>(tag))) {
    case kStarted:
      if (!ok) return OnRead(false, by_poller);
      call_->started.store(true);
      return;
    case kWritten:
      return outbox_.Written();
    case kRead:
      return OnRead(ok, by_poller);
    case kFinished:
      call_->answered.store(true);
      return Lose(absl::StrCat("the daemon ended the session: ", Describe(call_->status)));
    case kKicked: {
      absl::MutexLock lock(&mu_);
      kick_pending_ = false;
      // It was meant for the poller.
      if (!by_poller && (polling_ || has_network_thread_)) KickLocked();
      return;
    }
  }
}

void RemoteTransport::OnRead(bool ok, bool by_poller) {
  if (!ok) {
    call_->operations.fetch_add(1);
    call_->stream->Finish(&call_->status, reinterpret_cast<void*>(kFinished));
    return;
  }
  {
    absl::MutexLock lock(&in_mu_);
    inbox_bytes_ += call_->incoming.Length();
    inbox_.push_back(std::move(call_->incoming));
    call_->incoming.Clear();
  }
  read_due_.store(true, std::memory_order_release);
  inbox_count_.fetch_add(1, std::memory_order_seq_cst);
  call_->answered.store(true);
  if (by_poller && !has_network_thread_) return;  // It looks for itself.
  absl::MutexLock lock(&mu_);
  WakeSleepersLocked();
}

// Something has come by way of a thread that does not wait for it.
void RemoteTransport::WakeSleepersLocked() {
  // A waiter takes everything.
  if (has_network_thread_) return (waiter_sleeps_ ? waiter_wake_ : background_wake_).Signal();
  waiter_wake_.Signal();
  background_wake_.Signal();
  if (polling_) KickLocked();
}

bool RemoteTransport::Receive(wire::Frame* frame) {
  while (!lost()) {
    if (!reading_message_) {
      grpc::ByteBuffer message;
      {
        absl::MutexLock lock(&in_mu_);
        if (inbox_.empty()) return false;
        message.Swap(&inbox_.front());
        inbox_.pop_front();
        inbox_bytes_ -= message.Length();
      }
      if (!reader_.Reset(message)) {
        Lose("a message from the daemon cannot be read");
        return false;
      }
      reading_message_ = true;
    }
    if (reader_.left() == 0) {
      uint32_t field = 0;
      const wire::MessageReader::Step step = reader_.NextField(&field);
      if (step == wire::MessageReader::Step::kMalformed)
        Lose("a message from the daemon is malformed");
      if (step != wire::MessageReader::Step::kField) {
        reading_message_ = false;
        inbox_count_.fetch_sub(1, std::memory_order_relaxed);
      } else if (field != wire::kPiecesField) {
        reader_.Skip(reader_.left());
      }
      continue;
    }
    const absl::StatusOr<bool> whole = TakePiece(frame);
    if (!whole.ok()) Lose(std::string(whole.status().message()));
    if (whole.ok() && *whole) return true;
  }
  return false;
}

// True if `frame` is whole now.
absl::StatusOr<bool> RemoteTransport::TakePiece(wire::Frame* frame) {
  wire::PieceHeader piece;
  if (!reader_.Read(&piece, sizeof(piece)))
    return absl::InvalidArgumentError("piece header cut short");
  RETURN_IF_ERROR(assembler_.Begin(piece));
  const auto append = [this](const char* part, size_t bytes) { assembler_.Append({part, bytes}); };
  if (!reader_.ForEachPart(piece.body_bytes, append) ||
      !reader_.Skip(wire::PaddedPieceBytes(piece.body_bytes) - sizeof(piece) - piece.body_bytes)) {
    return absl::InvalidArgumentError("piece body cut short");
  }
  bool complete = false;
  RETURN_IF_ERROR(assembler_.End(piece, frame, &complete));
  return complete;
}

bool RemoteTransport::HasFrame() const {
  if (inbox_count_.load(std::memory_order_acquire) > 0) return true;
  if (lost()) return false;
  // For those who look again and again instead of waiting.
  auto* self = const_cast<RemoteTransport*>(this);
  if (self->looks_.fetch_add(1, std::memory_order_relaxed) < kPollingLooks) return false;
  const int64_t now = wire::MonotonicNs();
  if (now - brief_poll_ns_.load(std::memory_order_relaxed) < kBetweenBriefPollsNs) return false;
  self->brief_poll_ns_.store(now, std::memory_order_relaxed);
  self->Push();
  self->TryPoll(0);
  if (inbox_count_.load(std::memory_order_acquire) > 0) return true;
  // Those who bring the answer may be waiting for this processor.
  std::this_thread::yield();
  return false;
}

uint32_t RemoteTransport::Arm(wire::RingSleep state, uint64_t) {
  sleep_state_.store(state, std::memory_order_seq_cst);
  return bell_.load(std::memory_order_seq_cst);
}

bool RemoteTransport::SleepMayEnd(uint32_t ticket) const {
  return inbox_count_.load(std::memory_order_acquire) > 0 || lost() ||
         bell_.load(std::memory_order_seq_cst) != ticket;
}

void RemoteTransport::Wait(uint32_t ticket, uint32_t bit) {
  if (lost()) return;
  burst_.store(0, std::memory_order_relaxed);
  looks_.store(0, std::memory_order_relaxed);
  const bool background = bit == wire::kBitBackground;
  if (has_network_thread_) return SleepUntilNews(ticket, background);
  Flush();
  ReadOn();
  absl::MutexLock lock(&mu_);
  if (!background) {
    waiter_waits_ = true;
    ++waits_;
  }
  while (!SleepMayEnd(ticket)) {
    // Also when the waiter has just sent us away and not taken the role yet: we hold the lock
    // first.
    if (background && (polling_ || waiter_waits_)) {
      AwaitWaiterLocked();
      continue;
    }
    if (polling_) {
      if (poller_is_background_) KickLocked();
      waiter_wake_.Wait(&mu_);
      continue;
    }
    if (background) {
      if (const int64_t hold_back_ns = HoldBackNs(); hold_back_ns > 0) {
        background_wake_.WaitWithTimeout(&mu_, absl::Nanoseconds(hold_back_ns));
        continue;
      }
    }
    TakeRoleLocked(background);
    mu_.Unlock();
    ReadOn();
    PollOnce(After(kLookAgainNs));
    mu_.Lock();
    LeaveRoleLocked();
  }
  if (background) {
    last_background_ns_ = wire::MonotonicNs();
  } else {
    waiter_waits_ = false;
    last_waiter_ns_ = wire::MonotonicNs();
    if (waiter_is_awaited_) background_wake_.Signal();
  }
}

// The background thread, while another one has the role.
void RemoteTransport::AwaitWaiterLocked() {
  const uint64_t wait = waits_;
  if (!background_wake_.WaitWithTimeout(&mu_, kWhileWaiterPolls)) return;
  if (!waiter_waits_ || waits_ != wait) return;
  waiter_is_awaited_ = true;
  background_wake_.Wait(&mu_);
  waiter_is_awaited_ = false;
}

void RemoteTransport::Interrupt(uint32_t bits) {
  absl::MutexLock lock(&mu_);
  bell_.fetch_add(1, std::memory_order_seq_cst);
  if ((bits & wire::kBitWaiter) != 0) waiter_wake_.SignalAll();
  if ((bits & wire::kBitBackground) != 0) background_wake_.SignalAll();
  if (polling_ && (bits & (poller_is_background_ ? wire::kBitBackground : wire::kBitWaiter)) != 0)
    KickLocked();
  if (has_network_thread_ && lost()) KickLocked();
}

void RemoteTransport::TakeRoleLocked(bool background) {
  polling_ = true;
  poller_is_background_ = background;
}

void RemoteTransport::LeaveRoleLocked() {
  polling_ = false;
  waiter_wake_.Signal();
  if (sleep_state_.load(std::memory_order_relaxed) == wire::kSleepsEagerly)
    background_wake_.Signal();
}

bool RemoteTransport::PollOnce(gpr_timespec deadline) {
  if (LoseIfTrouble()) return false;
  void* tag = nullptr;
  bool ok = false;
  if (call_->queue.AsyncNext(&tag, &ok, deadline) != grpc::CompletionQueue::GOT_EVENT) return false;
  Complete(tag, ok, /*by_poller=*/true);
  if (outbox_.bytes() > 0) Flush();
  return true;
}

bool RemoteTransport::TryPoll(int64_t nanoseconds) {
  if (has_network_thread_ || !mu_.TryLock()) return false;
  if (polling_) {
    mu_.Unlock();
    return false;
  }
  TakeRoleLocked(/*background=*/true);
  mu_.Unlock();
  ReadOn();
  const int before = inbox_count_.load(std::memory_order_relaxed);
  PollOnce(nanoseconds == 0 ? gpr_time_0(GPR_CLOCK_MONOTONIC) : After(nanoseconds));
  absl::MutexLock lock(&mu_);
  LeaveRoleLocked();
  if (inbox_count_.load(std::memory_order_relaxed) > before) background_wake_.Signal();
  return true;
}

// How long the background thread should leave the queue alone.
int64_t RemoteTransport::HoldBackNs() const {
  if (sleep_state_.load(std::memory_order_relaxed) == wire::kSleepsEagerly) return 0;
  const int64_t until =
      std::max(last_waiter_ns_ + kAfterWaiterNs, last_background_ns_ + kBetweenBatchesNs);
  return until - wire::MonotonicNs();
}

void RemoteTransport::KickLocked() {
  if (kick_pending_ || network_thread_ends_ || Abandoned()) return;
  kick_pending_ = true;
  call_->operations.fetch_add(1);
  call_->kick.Set(&call_->queue, gpr_time_0(GPR_CLOCK_MONOTONIC), reinterpret_cast<void*>(kKicked));
}

}  // namespace sluice::client
