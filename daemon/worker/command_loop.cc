// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/command_loop.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "broker/os/threads.h"
#include "daemon/worker/handlers/handlers.h"
#include "daemon/worker/queues/enqueuer.h"
#include "google/protobuf/arena.h"
#include "proto/status_macros.h"

namespace sluice::worker {
namespace {

constexpr uint64_t kCommandsBetweenPolls = 64;
// A few launches.
constexpr uint64_t kMoreFollowsBytes = 512;
// Beside a program: a message, or what travels with a creation.
constexpr uint64_t kFrameRoom = uint64_t{4} << 20;
static_assert(kFrameRoom > 2 * wire::kMaxInitialPayloadBytes);
// Without a sleep, after the driver has done all.
constexpr int64_t kLookOnNs = 100'000;

enum class ReplyMode { kAnswer, kDeferred, kNone };

ReplyMode ModeOf(pb::Command::BodyCase body) {
  switch (body) {
#define COMMAND(Name, field, reply) \
  case pb::Command::k##Name:        \
    return ReplyMode::k##reply;
#include "proto/commands.inc"
    case pb::Command::BODY_NOT_SET:
      break;
  }
  return ReplyMode::kNone;
}

// No queue's: commands that wait for it tell of the failure.
Refusal DescribeRefusal(const char* name, const pb::CreateUserEvent& body) {
  return {name, 0, body.event_id(), true};
}

template <typename T>
Refusal DescribeRefusal(const char* name, const T& body) {
  if constexpr (requires { body.on(); }) {
    return {name, body.on().queue_id(), body.on().event_id(), !body.on().unnamed()};
  } else if constexpr (requires { body.queue_id(), body.event_id(); }) {
    return {name, body.queue_id(), body.event_id()};  // Finish: nobody names its event.
  } else {
    return {name};
  }
}

HandlerResult Dispatch(Session& session, const pb::Command& command, Call& call) {
  switch (command.body_case()) {  // No default: a command without a row must not build.
#define COMMAND(Name, field, reply) \
  case pb::Command::k##Name:        \
    return Handle##Name(session, command.field(), call);
#include "proto/commands.inc"
    case pb::Command::BODY_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("command with no body this daemon knows");
}

// The id of what a creation makes. Of other commands, 0 or an id that is in use.
template <typename T>
uint64_t CreatedId(const T& body) {
  if constexpr (requires { body.mem_id(); }) {
    return body.mem_id();
  } else if constexpr (requires { body.kernel_id(); }) {
    return body.kernel_id();
  } else if constexpr (requires { body.program_id(); }) {
    return body.program_id();
  } else if constexpr (requires { body.sampler_id(); }) {
    return body.sampler_id();
  } else if constexpr (requires { body.queue_id(); }) {
    return body.queue_id();
  } else {
    return 0;
  }
}

uint64_t CreatedId(const pb::Command& command) {
  switch (command.body_case()) {
#define COMMAND(Name, field, reply) \
  case pb::Command::k##Name:        \
    return CreatedId(command.field());
#include "proto/commands.inc"
    case pb::Command::BODY_NOT_SET:
      break;
  }
  return 0;
}

Refusal Describe(const pb::Command& command) {
  switch (command.body_case()) {
#define COMMAND(Name, field, reply) \
  case pb::Command::k##Name:        \
    return DescribeRefusal(#Name, command.field());
#include "proto/commands.inc"
    case pb::Command::BODY_NOT_SET:
      break;
  }
  return {};
}

}  // namespace

uint64_t CommandLoop::MaxFrameBytes(const Limits& limits) {
  return std::min(wire::kMaxFrameBytes,
                  std::min(wire::kMaxFrameBytes, limits.program_bytes) + kFrameRoom);
}

void CommandLoop::AnswerTooLarge(uint64_t sequence) {
  // A client that sends that much asks for a program, and waits; one that does not wait takes the
  // answer for the session's end, since its command is lost. Sections 5.8.1, 5.8.6:
  // CL_OUT_OF_HOST_MEMORY if there is a failure to allocate resources required by the OpenCL
  // implementation on the host.
  pb::Reply reply;
  reply.mutable_answer()->set_sequence(sequence);
  reply.mutable_answer()->set_status(CL_OUT_OF_HOST_MEMORY);
  session_->replies().Send(reply, wire::Wake::kWaiter);
}

absl::Status CommandLoop::HandleFrame(wire::Frame& frame) {
  const uint64_t sequence = frame.header().sequence;
  if (sequence != last_sequence_ + 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("command ", sequence, " follows ", last_sequence_));
  }
  last_sequence_ = sequence;
  if (frame.too_large()) {
    AnswerTooLarge(sequence);
    return absl::OkStatus();
  }

  alignas(8) char block[4096];
  google::protobuf::ArenaOptions options;
  options.initial_block = block;
  options.initial_block_size = sizeof(block);
  google::protobuf::Arena arena(options);
  pb::Command& command = *google::protobuf::Arena::CreateMessage<pb::Command>(&arena);
  const std::string_view message = frame.message();
  if (!command.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
    return absl::InvalidArgumentError(absl::StrCat("command ", sequence, " does not parse"));
  }
  pb::Reply& reply = *google::protobuf::Arena::CreateMessage<pb::Reply>(&arena);
  const ReplyMode mode = ModeOf(command.body_case());
  pb::Answer* const answer = reply.mutable_answer();
  Call call{frame, *answer};
  session_->objects().ForgetFailed();
  const HandlerResult result = Dispatch(*session_, command, call);
  session_->counts.commands.fetch_add(1, std::memory_order_relaxed);
  if (result.is_violation()) return result.violation();
  RETURN_IF_ERROR(session_->TakeViolation());
  if (result.is_later()) return absl::OkStatus();
  const cl_int status = session_->objects().CodeFor(result.status());
  if (mode == ReplyMode::kAnswer && command.unasked_for() == 0) {
    answer->set_sequence(sequence);
    answer->set_status(status);
    if (command.has_create_context() || CreatedId(command) != 0)
      session_->DescribeLease(answer->mutable_lease());
    const uint32_t flags = answer->memory().in_heap() ? wire::kFrameCreatesMemory : 0;
    session_->replies().Send(reply, wire::Wake::kWaiter, {}, flags);
  } else if (status != CL_SUCCESS && mode == ReplyMode::kAnswer) {
    session_->ReportFailedCreation(Describe(command).call, command.unasked_for(),
                                   CreatedId(command), status);
  } else if (status != CL_SUCCESS) {
    session_->ReportRefused(Describe(command), status);
  }
  return absl::OkStatus();
}

absl::Status CommandLoop::Run() {
  session_->AttachThread();
  wire::Frame frame;
  while (!stopped()) {
    ASSIGN_OR_RETURN(const bool got, reader_.Next(&frame));
    if (got) {
      session_->set_more_follows(reader_.BytesWaiting() >= kMoreFollowsBytes);
      RETURN_IF_ERROR(HandleFrame(frame));
      // Also under a client that never pauses.
      if (last_sequence_ % kCommandsBetweenPolls == 0 && session_->completions().polls()) Poll();
    } else {
      RETURN_IF_ERROR(Idle());
    }
  }
  return absl::OkStatus();
}

void CommandLoop::Poll() {
  const Completions::Polled polled = session_->completions().Poll();
  const int64_t now = wire::MonotonicNs();
  if (polled.any_ended) forecast_.NoteEnd(now);
  if (!polled.any_left) {
    forecast_.NoteNoWork();
  } else {
    forecast_.NoteWork(now);
  }
  polled_ = polled;
  polled_ns_ = now;
}

void CommandLoop::PollUntilCommand() {
  int64_t progress = polled_ns_ = wire::MonotonicNs();
  forecast_.NoteCommand(polled_ns_);
  bool may_spin = true;
  while (!reader_.HasPiece() && !stopped()) {
    const int64_t pause = may_spin ? forecast_.PauseNs(polled_ns_) : forecast_.SleepNs(polled_ns_);
    const int64_t before = wire::MonotonicNs();
    if (pause > 0) {
      reader_.Sleep(wire::kSleepsForAny, 0, wire::kBitWaiter, pause);
      reader_.Arm(wire::kAwake);
    } else if (forecast_.TakeWakeUp(polled_ns_)) {
      session_->replies().WakeWaiter();
    } else if (wire::HasOneProcessor()) {
      os::LetOthersRun();
    }
    Poll();
    // Others want the processor.
    if (pause == 0 && polled_ns_ - before > wire::AdaptiveSpin::kLossNs && !polled_.any_ended)
      may_spin = false;
    if (polled_.any_ended) {
      progress = polled_ns_;
      session_->FlushTouched();  // Commands that waited for it may have been enqueued.
    }
    // With nothing left, what the client says next is worth the same moment.
    const bool looks_on = polled_ns_ - progress < kLookOnNs && may_spin;
    if ((!polled_.any_left && !looks_on) || session_->replies().violated()) return;
  }
}

absl::Status CommandLoop::Idle() {
  session_->FlushTouched();
  if (session_->replies().violated() && !stopped())
    return absl::InvalidArgumentError("the client does not take its replies");
  if (session_->completions().polls()) {
    PollUntilCommand();
    if (reader_.HasPiece()) return absl::OkStatus();
    Poll();
    if (polled_.any_left) return absl::OkStatus();
  }
  if (spin_.Until([this] { return reader_.HasPiece(); })) return absl::OkStatus();
  reader_.Sleep(wire::kSleepsForAny, 0, wire::kBitWaiter, -1);
  reader_.Arm(wire::kAwake);
  return absl::OkStatus();
}

}  // namespace sluice::worker
