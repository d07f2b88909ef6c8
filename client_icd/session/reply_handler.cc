// SPDX-License-Identifier: Apache-2.0
// CommandStream's half that takes replies: checks each and does what it says.
#include <cstdio>
#include <new>
#include <string>

#include "absl/strings/str_cat.h"
#include "client_icd/base/client_log.h"
#include "client_icd/base/copy_helpers.h"
#include "client_icd/session/command_arena.h"
#include "client_icd/session/command_stream.h"
#include "client_icd/session/session.h"
#include "proto/heap_span.h"

namespace sluice::client {
namespace {

// Over the network, data goes in messages of this size.
constexpr uint64_t kNetworkChunkBytes = uint64_t{1} << 20;
// No worker that has ended left more frames behind.
constexpr int kMaxLastWords = 65536;

// A map's bytes go into the application's own memory, which need not be writable as long as nothing
// has written to the buffer.
void TakeBytes(const PendingCommand& pending, uint64_t offset, uint64_t size, const uint8_t* from) {
  const cl_command_type type = pending.type();
  const bool maps = type == CL_COMMAND_MAP_BUFFER || type == CL_COMMAND_MAP_IMAGE;
  if (maps) return pending.region().Refresh(offset, size, from);
  pending.region().Scatter(offset, size, from);
}

thread_local int tls_handling = 0;

}  // namespace

CommandStream::Handling::Handling() { ++tls_handling; }
CommandStream::Handling::~Handling() { --tls_handling; }
bool CommandStream::HandlesHere() { return tls_handling > 0; }

struct CommandStream::ReplyArena : MessageArena {};

CommandStream::CommandStream(Session* session, Transport* transport)
    : session_(session), transport_(transport), arena_(std::make_unique<ReplyArena>()) {}

CommandStream::~CommandStream() = default;

void CommandStream::Drain(const Waiter* self) {
  bool any = false;
  {
    absl::MutexLock lock(&drain_mu_);
    const Handling handling;
    try {
      while (transport_->Receive(&frame_)) {
        any = true;
        TakeFrame();
      }
    } catch (const std::bad_alloc&) {
      session_->Lose("this process has no memory left for what the worker sends");
    }
  }
  if (!any) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);  // Pairs with the fence in WaitUntil.
  if (waiter_count_.load(std::memory_order_seq_cst) > (self == nullptr ? 0u : 1u)) SignalDone(self);
}

void CommandStream::TakeFrame() {
  pb::Reply* reply = arena_->Make<pb::Reply>();
  const std::string_view message = frame_.message();
  if (reply->ParseFromArray(message.data(), static_cast<int>(message.size()))) {
    Handle(frame_, *reply);
  } else {
    session_->Lose("a reply does not parse");
  }
  arena_->Reset();
}

void CommandStream::Handle(const wire::Frame& frame, const pb::Reply& reply) {
  switch (reply.body_case()) {
    case pb::Reply::kAnswer:
      return HandleAnswer(reply.answer());
    case pb::Reply::kCompletion:
      return HandleCompletion(reply.completion(), frame.payload());
    case pb::Reply::kLateError:
      return HandleLateError(reply.late_error());
    case pb::Reply::kGrant:
      return HandleGrant(reply.grant(), frame.bulk());
    case pb::Reply::kReadData:
      return HandleReadData(reply.read_data(), frame.bulk(), frame.payload());
    case pb::Reply::kDestroyed:
      return session_->RunDestructorCallbacks(reply.destroyed().id());
    case pb::Reply::kContextNotify: {
      const pb::ContextNotify& notify = reply.context_notify();
      const Session::Listener context =
          session_->FindListener(notify.context_id(), ObjectKind::kContext);
      if (context.object) context.listener->OnNotify(notify.message(), notify.private_info());
      return;
    }
    case pb::Reply::kCreationFailed: {
      const pb::CreationFailed& failed = reply.creation_failed();
      const Session::Listener context =
          session_->FindListener(failed.context_id(), ObjectKind::kContext);
      if (context.object) context.listener->OnCreationFailed(failed.call(), failed.status());
      return;
    }
    case pb::Reply::kPrinted:
      return Print(reply.printed());
    case pb::Reply::kSessionEnded:
      return session_->Lose(
          absl::StrCat("the worker ended the session: ", reply.session_ended().reason()));
    case pb::Reply::BODY_NOT_SET:
      return session_->Lose("a reply of a kind that this driver does not know");
  }
}

void CommandStream::Print(const pb::Printed& printed) {
  std::fwrite(printed.text().data(), 1, printed.text().size(), stdout);
  std::fflush(stdout);
}

// The worker's last replies: the answer that somebody waits for, and why it ended. Completions
// count no more, since nothing can be asked for of what has completed.
void CommandStream::HandleLastWords() {
  transport_->ReceiveLastWords();
  for (int i = 0; i < kMaxLastWords && transport_->Receive(&frame_); ++i) {
    pb::Reply* reply = arena_->Make<pb::Reply>();
    const std::string_view message = frame_.message();
    if (reply->ParseFromArray(message.data(), static_cast<int>(message.size()))) {
      if (reply->has_answer()) HandleAnswer(reply->answer());
      if (reply->has_printed()) Print(reply->printed());
      if (reply->has_session_ended()) Handle(frame_, *reply);
    }
    arena_->Reset();
  }
}

void CommandStream::FinishCall(PendingCall* call, cl_int status) {
  call->status = status;
  call->done.store(true, std::memory_order_release);  // From here on the caller may have returned.
}

void CommandStream::HandleAnswer(const pb::Answer& answer) {
  PendingCall* call = nullptr;
  {
    absl::MutexLock lock(&pending_mu_);
    const auto it = pending_calls_.find(answer.sequence());
    if (it != pending_calls_.end()) {
      call = it->second;
      pending_calls_.erase(it);
    }
  }
  // The worker has dropped a command whose events would never end: it is larger than it takes.
  if (call == nullptr)
    return session_->Lose("a command is larger than the daemon's program_bytes allow");
  if (call->answer != nullptr) call->answer->CopyFrom(answer);
  FinishCall(call, answer.status());
}

CommandStream::Tracked CommandStream::FindPending(uint64_t event_id) {
  absl::MutexLock lock(&pending_mu_);
  const auto it = pending_events_.find(event_id);
  return it == pending_events_.end() ? Tracked() : it->second;
}

CommandStream::Tracked CommandStream::TakePending(uint64_t event_id) {
  absl::MutexLock lock(&pending_mu_);
  const auto it = pending_events_.find(event_id);
  if (it == pending_events_.end()) return {};
  Tracked tracked = std::move(it->second);
  pending_events_.erase(it);
  return tracked;
}

void CommandStream::HandleCompletion(const pb::Completion& completion, std::string_view payload) {
  const Tracked event = TakePending(completion.event_id());
  if (!event) return;
  if (!payload.empty() && completion.status() == CL_COMPLETE) {
    const HostRegion& region = event->region();
    if (event->direction() != PendingCommand::Direction::kToHost ||
        payload.size() != region.packed_bytes()) {
      session_->Lose(
          absl::StrCat("a completion brought ", payload.size(), " bytes that were not asked for"));
    } else {
      TakeBytes(*event, 0, payload.size(), reinterpret_cast<const uint8_t*>(payload.data()));
    }
  }
  if (completion.status() > CL_COMPLETE)
    session_->Lose("a completion that says its command has not ended");
  const bool broken = transport_->lost();
  event->End(broken ? session_->lost_code() : completion.status(),
             absl::MakeConstSpan(completion.profiling().data(), completion.profiling_size()));
}

void CommandStream::HandleLateError(const pb::LateError& error) {
  if (ClientLogs(ClientLogLevel::kInfo)) {
    ClientLog(ClientLogLevel::kInfo, absl::StrCat(error.call(), " has failed with ", error.status(),
                                                  " after its call had returned"));
  }
  const Tracked event = FindPending(error.event_id());
  if (event && event->answered()) return;  // Not late: the call has not returned.
  const Session::Listener queue = session_->FindListener(error.queue_id(), ObjectKind::kQueue);
  const uint64_t told_by = event && event->given() ? error.event_id() : 0;
  if (queue.object) queue.listener->OnLateError(error.call(), error.status(), told_by);
}

void CommandStream::HandleGrant(const pb::Grant& grant, const wire::BulkSpan& bulk) {
  const Tracked event = FindPending(grant.event_id());
  if (!event) return;
  if (event->direction() != PendingCommand::Direction::kFromHost ||
      !wire::SpanFits(grant.offset(), grant.size(), event->region().packed_bytes())) {
    return session_->Lose(absl::StrCat("a grant asks for bytes ", grant.offset(), "+", grant.size(),
                                       " that its command does not have"));
  }
  if (!transport_->shares_memory()) return SendChunks(*event, grant);
  uint8_t* to = transport_->Map(bulk);
  if (to == nullptr || bulk.size < grant.size())
    return session_->Lose("a grant whose span is not in the heap");
  const HostRegion& region = event->region();
  CopyHelpers::Get().Run(grant.size(), [&](uint64_t offset, uint64_t bytes) {
    if (region.contiguous() && grant.size() >= kWorthStreaming) {
      StreamingCopy(to + offset, region.base() + grant.offset() + offset, bytes);
    } else {
      region.Gather(grant.offset() + offset, bytes, to + offset);
    }
  });
  ScopedCommand command;
  pb::TransferChunk& chunk = *command->mutable_transfer_chunk();
  chunk.set_event_id(grant.event_id());
  chunk.set_offset(grant.offset());
  chunk.set_size(grant.size());
  Send(*command, {}, wire::kFrameTransferChunk, bulk, /*wake=*/true, nullptr);
}

void CommandStream::SendChunks(const PendingCommand& event, const pb::Grant& grant) {
  std::string gathered;
  for (uint64_t sent = 0; sent < grant.size();) {
    const uint64_t bytes = std::min(kNetworkChunkBytes, grant.size() - sent);
    const uint64_t offset = grant.offset() + sent;
    const char* data = reinterpret_cast<const char*>(event.region().base()) + offset;
    if (!event.region().contiguous()) {
      gathered.resize(bytes);
      event.region().Gather(offset, bytes, reinterpret_cast<uint8_t*>(gathered.data()));
      data = gathered.data();
    }
    ScopedCommand command;
    pb::TransferChunk& chunk = *command->mutable_transfer_chunk();
    chunk.set_event_id(grant.event_id());
    chunk.set_offset(offset);
    chunk.set_size(bytes);
    if (!Send(*command, {data, bytes}, wire::kFrameTransferChunk, {}, /*wake=*/true, nullptr))
      return;
    sent += bytes;
  }
}

void CommandStream::HandleReadData(const pb::ReadData& data, const wire::BulkSpan& bulk,
                                   std::string_view payload) {
  const Tracked event = FindPending(data.event_id());
  if (event) {
    if (event->direction() != PendingCommand::Direction::kToHost ||
        !wire::SpanFits(data.offset(), data.size(), event->region().packed_bytes())) {
      return session_->Lose(absl::StrCat("read data for bytes ", data.offset(), "+", data.size(),
                                         " that its command did not ask for"));
    }
    const uint8_t* from = reinterpret_cast<const uint8_t*>(payload.data());
    uint64_t there = payload.size();
    if (bulk.segment != 0 && transport_->shares_memory()) {
      from = transport_->Map(bulk);
      there = from == nullptr ? 0 : bulk.size;
    }
    if (there < data.size()) return session_->Lose("read data whose bytes are not there");
    CopyHelpers::Get().Run(data.size(), [&](uint64_t offset, uint64_t bytes) {
      TakeBytes(*event, data.offset() + offset, bytes, from + offset);
    });
  }
  // Also for an event that is unknown by now: the worker's span must come free.
  ScopedCommand command;
  pb::TransferAck& ack = *command->mutable_transfer_ack();
  ack.set_event_id(data.event_id());
  ack.set_offset(data.offset());
  ack.set_size(data.size());
  Post(*command);
}

}  // namespace sluice::client
