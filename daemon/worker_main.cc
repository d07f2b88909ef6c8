// SPDX-License-Identifier: Apache-2.0
// sluice-worker: one session's process, with the real driver in it. Started by the broker, never by
// a person:
//
//   sluice-worker --session-id=HEX [limits]     descriptor 3: handle channel to the client, 4:
//   control socket to the broker sluice-worker --probe --snapshot-fd=N       writes a
//   PlatformSnapshot to descriptor N and ends
//
// It ends with its client: end of file on the handle channel. The broker's death does not end it.
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "broker/base/log.h"
#include "broker/broker_messages.h"
#include "broker/os/local_socket.h"
#include "broker/os/shared_memory.h"
#include "daemon/command_loop.h"
#include "daemon/probe.h"
#include "proto/handle_messages.h"
#include "proto/ring_abi.h"
#include "proto/status_macros.h"

namespace sluice {
namespace {

constexpr int kHandleChannel = 3;
constexpr int kControlSocket = 4;

struct Options {
  SessionOptions session;
  bool probe = false;
  int snapshot_fd = -1;
};

// 0 is no limit of the operator's: the worker's own stays.
bool ParseLimit(const std::string& text, uint64_t* out) {
  uint64_t limit = 0;
  if (!absl::SimpleAtoi(text, &limit)) return false;
  if (limit != 0) *out = limit;
  return true;
}

absl::StatusOr<Options> ParseOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const size_t equals = arg.find('=');
    const std::string name = arg.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : arg.substr(equals + 1);
    bool ok = true;
    uint64_t number = 0;
    if (name == "--probe") {
      options.probe = true;
    } else if (name == "--snapshot-fd") {
      ok = absl::SimpleAtoi(value, &options.snapshot_fd);
    } else if (name == "--session-id") {
      const std::optional<uint64_t> id = ParseHexId(value);
      ok = id.has_value();
      options.session.session_id = id.value_or(0);
    } else if (name == "--limit-memory") {
      ok = ParseLimit(value, &options.session.limits.memory_bytes);
    } else if (name == "--limit-objects") {
      ok = ParseLimit(value, &options.session.limits.objects);
    } else if (name == "--limit-program-bytes") {
      ok = ParseLimit(value, &options.session.limits.program_bytes);
    } else if (name == "--limit-in-flight") {
      ok = ParseLimit(value, &options.session.limits.in_flight);
    } else if (name == "--limit-build-ms") {
      ok = ParseLimit(value, &options.session.limits.build_ms);
    } else if (name == "--devices") {
      std::string& list = options.session.device_allow_list;  // Given once for each pattern.
      absl::StrAppend(&list, list.empty() ? "" : ",", value);
    } else if (name == "--sync") {
      ok = absl::SimpleAtoi(value, &number);
      options.session.sync = number != 0;
    } else if (name == "--log-level") {
      const std::optional<LogLevel> level = ParseLogLevel(value);
      ok = level.has_value();
      if (ok) SetLogLevel(*level);
    } else if (!absl::StartsWith(name, "--limit-")) {  // A limit that this worker does not know yet
                                                       // is the broker's to keep.
      ok = false;
    }
    if (!ok) return absl::InvalidArgumentError(absl::StrCat("sluice-worker: bad argument ", arg));
  }
  return options;
}

// One ring: made and sealed here, mapped here, its descriptor for the client.
absl::StatusOr<std::pair<UniqueFd, SharedMapping>> MakeRing(const char* name) {
  ASSIGN_OR_RETURN(UniqueFd file, CreateSharedMemory(name, kRingFileBytes));
  ASSIGN_OR_RETURN(SharedMapping mapping,
                   SharedMapping::Map(file.get(), kRingFileBytes, /*writable=*/true));
  return std::make_pair(std::move(file), std::move(mapping));
}

void Notice(WorkerNoticeKind kind, std::string_view text) {
  WorkerNotice notice = MakeMessage<WorkerNotice>();
  notice.kind = static_cast<uint32_t>(kind);
  SetString(notice.text, text);
  (void)SendMessage(kControlSocket, &notice,
                    sizeof(notice));  // The broker may be gone: the session goes on.
}

void SendStats(const Session& session) {
  WorkerStats stats = MakeMessage<WorkerStats>();
  Session& mutable_session = const_cast<Session&>(session);
  stats.memory_bytes = mutable_session.quota().memory_bytes();
  stats.object_count = session.object_count.load(std::memory_order_relaxed);
  stats.commands_executed = session.commands_executed.load(std::memory_order_relaxed);
  stats.context_count = session.context_count.load(std::memory_order_relaxed);
  SetString(stats.device_name, session.device_name());
  (void)SendMessage(kControlSocket, &stats, sizeof(stats));
}

[[noreturn]] void EndProcess(int code) {
  // Not exit(): drivers' destructors wait for kernels that may never end. The kernel takes
  // everything back.
  _exit(code);
}

void EndSession(Session& session, std::string_view reason) {
  pb::Reply reply;
  reply.mutable_session_ended()->set_reason(std::string(reason));
  session.replies().Send(reply, Wake::kUrgent);
}

// The driver is stuck in a compiler, perhaps with locks held: the session ends.
void EndAfterOverrun(Session& session, const std::string& why) {
  Log(LogLevel::kWarning, "worker", "session ended: a build took too long",
      {{"session", HexId(session.options().session_id)}, {"reason", why}});
  Notice(WorkerNoticeKind::kInfo, why);
  EndSession(session, why);
  EndProcess(4);
}

// Handles one message of the broker. False once the broker is gone.
bool OnControl(Session& session) {
  char buffer[kMaxBrokerMessageBytes];
  const absl::StatusOr<size_t> size =
      ReceiveMessage(kControlSocket, buffer, sizeof(buffer), nullptr, 0);
  if (!size.ok() || *size == 0) return false;
  Terminate terminate;
  if (ParseMessage(buffer, *size, &terminate) && IsTerminated(terminate.reason)) {
    Log(LogLevel::kInfo, "worker", "ended by the broker",
        {{"session", HexId(session.options().session_id)}, {"reason", terminate.reason}});
    EndSession(session, terminate.reason);
    EndProcess(0);
  }
  if (PeekMessageType(buffer, *size) == static_cast<uint16_t>(MessageType::kStatsRequest))
    SendStats(session);
  return true;
}

// The main thread: the client's end ends us; the broker may ask for numbers.
[[noreturn]] void Watch(Session& session) {
  pollfd entries[2] = {{kHandleChannel, POLLIN, 0}, {kControlSocket, POLLIN, 0}};
  while (true) {
    if (poll(entries, 2, -1) < 0) continue;
    if (entries[0].revents != 0)
      EndProcess(0);  // The client sends nothing: anything here is its end.
    if (entries[1].revents != 0 && !OnControl(session)) entries[1].fd = -1;
  }
}

absl::Status RunSession(const SessionOptions& options) {
  RETURN_IF_ERROR(Driver::Load());
  ASSIGN_OR_RETURN(auto commands, MakeRing("sluice-commands"));
  ASSIGN_OR_RETURN(auto replies, MakeRing("sluice-replies"));
  // All of this lives until the process ends.
  static Session& session = *new Session(options, kHandleChannel, replies.second.data());
  RETURN_IF_ERROR(session.AddDevices());
  RETURN_IF_ERROR(session.printf().Start(&session.replies()));
  session.builds().set_on_overrun([](const std::string& why) { EndAfterOverrun(session, why); });
  static CommandLoop& loop = *new CommandLoop(&session, commands.second.data());
  HandleMessage offer = {};
  offer.magic = kHandleMagic;
  offer.type = HandleMessageType::kRingOffer;
  offer.size = kRingFileBytes;
  const int fds[] = {commands.first.get(), replies.first.get()};
  RETURN_IF_ERROR(SendMessage(kHandleChannel, &offer, sizeof(offer), fds, 2));
  std::thread([&] {
    const std::string violation(loop.Run().message());
    Log(LogLevel::kWarning, "worker", "session ended: the client broke the protocol",
        {{"session", HexId(session.options().session_id)}, {"violation", violation}});
    Notice(WorkerNoticeKind::kViolation, violation);
    EndSession(session, absl::StrCat("protocol violation: ", violation));
    EndProcess(3);
  }).detach();
  Watch(session);
}

}  // namespace

int WorkerMain(int argc, char** argv) {
  // Debian builds abseil with its deadlock detector on, which makes every lock several times
  // dearer.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  prctl(PR_SET_DUMPABLE, 0);  // Other workers of the same user must not look in.
  const absl::StatusOr<Options> options = ParseOptions(argc, argv);
  absl::Status status = options.status();
  if (status.ok())
    status = options->probe ? Probe(options->snapshot_fd, options->session.device_allow_list)
                            : RunSession(options->session);
  if (status.ok()) EndProcess(0);
  const std::string message(status.message());
  Log(LogLevel::kError, "worker", message);
  if (options.ok() && !options->probe) Notice(WorkerNoticeKind::kDriverError, message);
  EndProcess(1);
}

}  // namespace sluice

int main(int argc, char** argv) { return sluice::WorkerMain(argc, argv); }
