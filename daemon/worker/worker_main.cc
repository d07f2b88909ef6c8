// SPDX-License-Identifier: Apache-2.0
// sluice-worker: one session's process, with the real driver in it. Started by the broker, never by
// a person:
//
//   sluice-worker --session-id=HEX [limits]     descriptor 3: handle channel to the client, 4:
//   control socket to the broker sluice-worker --probe --snapshot-fd=N       writes a
//   PlatformSnapshot to descriptor N and ends
//
// It ends with its client: end of file on the handle channel. The broker's death does not end it.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "broker/base/log.h"
#include "broker/os/command_line.h"
#include "broker/os/file.h"
#include "broker/os/local_socket.h"
#include "broker/os/poller.h"
#include "broker/os/shared_memory.h"
#include "broker/os/threads.h"
#include "daemon/helpers/confined_calls.h"
#include "daemon/helpers/helper_process.h"
#include "daemon/helpers/own_namespaces.h"
#include "daemon/worker/command_loop.h"
#include "daemon/worker/probe.h"
#include "daemon/worker/programs/compile_cache.h"
#include "daemon/worker/programs/include_folder.h"
#include "daemon/worker/queues/kernel_watch.h"
#include "daemon/worker/worker_files.h"
#include "daemon/worker/worker_options.h"
#include "daemon/worker/worker_process.h"
#include "proto/broker_messages.h"
#include "proto/handle_messages.h"
#include "proto/memory_messages.h"
#include "proto/quiet_parsing.h"
#include "proto/ring_abi.h"
#include "proto/status_macros.h"

namespace sluice::worker {
namespace {

constexpr int kHandleChannel = 3;
constexpr int kControlSocket = 4;
// The pages on which the broker gives turns.
constexpr int kTurnOrders = 5;
constexpr int kTurnWords = 6;
constexpr absl::Duration kAfterClient = absl::Seconds(2);  // Far more than an end takes by itself.

// One ring: made and sealed here, mapped here, its descriptor for the client.
absl::StatusOr<std::pair<os::UniqueFd, os::SharedMapping>> MakeRing(const char* name) {
  ASSIGN_OR_RETURN(os::UniqueFd file, os::CreateSharedMemory(name, wire::kRingFileBytes));
  ASSIGN_OR_RETURN(os::SharedMapping mapping,
                   os::SharedMapping::Map(file.get(), wire::kRingFileBytes, /*writable=*/true));
  return std::make_pair(std::move(file), std::move(mapping));
}

void Notice(wire::WorkerNoticeKind kind, std::string_view text) {
  wire::WorkerNotice notice = wire::MakeMessage<wire::WorkerNotice>();
  notice.kind = static_cast<uint32_t>(kind);
  wire::SetString(notice.text, text);
  (void)os::SendMessage(kControlSocket, &notice,
                        sizeof(notice));  // The broker may be gone: the session goes on.
}

void SendStats(const Session& session) {
  wire::WorkerStats stats = wire::MakeMessage<wire::WorkerStats>();
  Session& mutable_session = const_cast<Session&>(session);
  stats.memory_bytes = mutable_session.quota().memory_bytes();
  stats.object_count = session.counts.objects.load(std::memory_order_relaxed);
  stats.commands_executed = session.counts.commands.load(std::memory_order_relaxed);
  stats.context_count = session.counts.contexts.load(std::memory_order_relaxed);
  stats.imported_objects = session.counts.imported.load(std::memory_order_relaxed);
  stats.shadowed_objects = session.counts.shadowed.load(std::memory_order_relaxed);
  stats.staged_objects = session.counts.staged.load(std::memory_order_relaxed);
  wire::SetString(stats.device_name, session.device_name());
  (void)os::SendMessage(kControlSocket, &stats, sizeof(stats));
}

void SendShadowStats(const Session& session) {
  wire::ShadowStats stats = wire::MakeMessage<wire::ShadowStats>();
  stats.by_semaphores = session.counts.semaphored.load(std::memory_order_relaxed);
  stats.by_keyed_mutex = session.counts.mutexed.load(std::memory_order_relaxed);
  (void)os::SendMessage(kControlSocket, &stats, sizeof(stats));
}

[[noreturn]] void EndProcess(int code) {
  // Not exit(): drivers' destructors wait for kernels that may never end. The kernel takes
  // everything back.
  os::EndProcessNow(code);
}

void EndSession(Session& session, std::string_view reason) {
  pb::Reply reply;
  reply.mutable_session_ended()->set_reason(std::string(reason));
  session.replies().Send(reply, wire::Wake::kUrgent);
}

// The driver is stuck in a compiler, perhaps with locks held, or in a kernel: the session ends.
void EndAfterOverrun(Session& session, const std::string& why) {
  Log(LogLevel::kWarning, "worker", "session ended: over a limit of time",
      {{"session", HexId(session.options().session_id)}, {"reason", why}});
  Notice(wire::WorkerNoticeKind::kInfo, why);
  EndSession(session, why);
  EndProcess(4);
}

// Handles one message of the broker. False once the broker is gone.
bool OnControl(Session& session) {
  char buffer[wire::kMaxBrokerMessageBytes];
  const absl::StatusOr<size_t> size =
      os::ReceiveMessage(kControlSocket, buffer, sizeof(buffer), nullptr, 0);
  if (!size.ok() || *size == 0) return false;
  wire::Terminate terminate;
  if (wire::ParseMessage(buffer, *size, &terminate) && wire::IsTerminated(terminate.reason)) {
    Log(LogLevel::kInfo, "worker", "ended by the broker",
        {{"session", HexId(session.options().session_id)}, {"reason", terminate.reason}});
    EndSession(session, terminate.reason);
    EndProcess(0);
  }
  if (wire::PeekMessageType(buffer, *size) ==
      static_cast<uint16_t>(wire::MessageType::kStatsRequest))
    SendStats(session);
  if (wire::PeekMessageType(buffer, *size) ==
      static_cast<uint16_t>(wire::MessageType::kShadowStatsRequest))
    SendShadowStats(session);
  wire::GrantMemory granted;
  if (wire::ParseMessage(buffer, *size, &granted))
    session.quota().grant().OnGranted(granted.serial, granted.bytes);
  wire::SpareMemory spare;
  if (wire::ParseMessage(buffer, *size, &spare)) session.quota().grant().OnSpare();
  return true;
}

[[noreturn]] void EndForViolation(Session& session, const std::string& violation) {
  Log(LogLevel::kWarning, "worker", "session ended: the client broke the protocol",
      {{"session", HexId(session.options().session_id)}, {"violation", violation}});
  Notice(wire::WorkerNoticeKind::kViolation, violation);
  EndSession(session, absl::StrCat("protocol violation: ", violation));
  EndProcess(3);
}

// The client's end of the handle channel: descriptors to import, or its end.
void OnHandleChannel(Session& session) {
  const absl::Status status = session.imports().Receive();
  if (absl::IsAborted(status)) EndProcess(0);
  if (!status.ok()) EndForViolation(session, std::string(status.message()));
}

// Once the client has gone, this ends the process if nobody else does: the main thread may be in a
// driver, which it loads before it looks, and the broker may be gone, whose timer would do it.
void EndSoonAfterClient() {
  os::StartDetached([] {
    const absl::StatusOr<std::unique_ptr<os::Poller>> poller = os::Poller::Create();
    if (!poller.ok() ||
        !(*poller)->Add(kHandleChannel, kHandleChannel, os::Poller::Interest::kHangUp).ok()) {
      return;
    }
    std::vector<uint64_t> ready;
    while (ready.empty()) (*poller)->Wait(-1, &ready);
    absl::SleepFor(kAfterClient);
    EndProcess(0);
  });
}

// The main thread: the client's end ends us; the broker may ask for numbers.
[[noreturn]] void Watch(Session& session) {
  const absl::StatusOr<std::unique_ptr<os::Poller>> poller = os::Poller::Create();
  if (!poller.ok() ||
      !(*poller)->Add(kHandleChannel, kHandleChannel, os::Poller::Interest::kReadable).ok() ||
      !(*poller)->Add(kControlSocket, kControlSocket, os::Poller::Interest::kReadable).ok()) {
    Notice(wire::WorkerNoticeKind::kDriverError, "a worker cannot wait for its client");
    EndProcess(1);
  }
  std::vector<uint64_t> ready;
  while (true) {
    (*poller)->Wait(-1, &ready);
    for (const uint64_t key : ready) {
      if (key == kHandleChannel) OnHandleChannel(session);
      if (key == kControlSocket && !OnControl(session)) {
        (*poller)->Remove(kControlSocket, kControlSocket);  // The broker is gone: we stay.
        session.quota().grant().OnLost();
      }
    }
  }
}

// Its account's device memory is the broker's to grant.
void AttachGrant(Session& session) {
  const uint64_t limit = session.options().limits.account_memory_bytes;
  if (limit == 0) return;
  MemoryGrant::Broker broker;
  broker.want = [](uint64_t serial, uint64_t bytes, bool ahead) {
    auto message = wire::MakeMessage<wire::WantMemory>();
    message.serial = serial;
    message.bytes = bytes;
    message.ahead = ahead ? 1 : 0;
    return os::SendMessage(kControlSocket, &message, sizeof(message)).ok();
  };
  broker.give_back = [](uint64_t bytes) {
    auto message = wire::MakeMessage<wire::MemoryReturned>();
    message.bytes = bytes;
    (void)os::SendMessage(kControlSocket, &message, sizeof(message));
  };
  session.quota().grant().Attach(std::move(broker), limit);
}

// Before the first driver is loaded, and the first thread started.
absl::Status Confine(const WorkerOptions& options) {
  if (options.confine_files) {
    const absl::Status confined =
        ConfineWorkerFiles(options.readable, options.executable, options.private_root);
    // Unavailable: the broker's log says so.
    if (!confined.ok() && !absl::IsUnavailable(confined)) return confined;
  }
  RETURN_IF_ERROR(os::GiveUpCapabilities());
  return os::ConfineCalls(os::Helper::kWorker, options.system_calls);
}

// Says which layers of the sandbox this process cannot have, a line each: why, or nothing.
absl::Status TrySandbox(const WorkerOptions& options) {
  const absl::Status namespaces = os::EnterNamespaces(os::Network::kNone);
  const absl::Status root =
      namespaces.ok() ? EnterWorkersRoot(options.readable, options.executable) : namespaces;
  return os::WriteWhole(options.snapshot_fd,
                        absl::StrCat(namespaces.message(), "\n", root.message()));
}

absl::Status Prepare(Session& session) {
  RETURN_IF_ERROR(Driver::Load());
  RETURN_IF_ERROR(session.AddDevices());
  // The probe has said so of its own user, which need not be this one.
  if (const std::string unusable = UnusableFolder(); !unusable.empty()) {
    Log(LogLevel::kWarning, "worker", unusable, {{"session", HexId(session.options().session_id)}});
  }
  return session.printf().Start(&session.replies());
}

absl::Status AttachTurns(WorkerOptions::Turns turns, Session& session) {
  if (turns == WorkerOptions::Turns::kNone) return absl::OkStatus();
  const os::UniqueFd orders_fd(kTurnOrders), words_fd(kTurnWords);
  ASSIGN_OR_RETURN(os::SharedMapping orders,
                   os::SharedMapping::Map(orders_fd.get(), wire::kTurnPageBytes, false));
  ASSIGN_OR_RETURN(os::SharedMapping words,
                   os::SharedMapping::Map(words_fd.get(), wire::kTurnPageBytes, true));
  const TurnGate::Pays pays =
      turns == WorkerOptions::Turns::kEverywhere  ? TurnGate::Pays::kEverywhere
      : turns == WorkerOptions::Turns::kWherePaid ? TurnGate::Pays::kWhereDear
                                                  : TurnGate::Pays::kNowhere;
  session.turns().Attach(std::move(orders), std::move(words), pays);
  session.completions().set_running(session.turns().running());
  return absl::OkStatus();
}

absl::Status RunSession(const WorkerOptions& all) {
  const SessionOptions& options = all.session;
  ASSIGN_OR_RETURN(auto commands, MakeRing("sluice-commands"));
  ASSIGN_OR_RETURN(auto replies, MakeRing("sluice-replies"));
  EndSoonAfterClient();
  // All of this lives until the process ends.
  static Session& session = *new Session(options, kHandleChannel, replies.second.data());
  RETURN_IF_ERROR(AttachTurns(all.turns, session));
  AttachGrant(session);
  session.set_on_lost_device(
      [](const std::string& what) { Notice(wire::WorkerNoticeKind::kDriverError, what); });
  const absl::Status prepared = Prepare(session);
  // The client cannot see our log.
  if (!prepared.ok()) EndSession(session, absl::StrCat("cannot start: ", prepared.message()));
  session.builds().set_on_overrun([](const std::string& why) { EndAfterOverrun(session, why); });
  if (const uint64_t limit_ms = options.limits.kernel_ms; limit_ms != 0) {
    new KernelWatch(&session.completions(), limit_ms,
                    [](const std::string& why) { EndAfterOverrun(session, why); });
  }
  static CompileCache& cache = *new CompileCache(CompileCacheFolder(), options.cache_bytes);
  session.builds().set_after_each([] { cache.AfterBuild(); });
  static CommandLoop& loop = *new CommandLoop(&session, commands.second.data());
  wire::HandleMessage offer = {};
  offer.magic = wire::kHandleMagic;
  offer.type = wire::HandleMessageType::kRingOffer;
  offer.size = wire::kRingFileBytes;
  offer.flags = wire::kTakesImports;
  const int fds[] = {commands.first.get(), replies.first.get()};
  const absl::Status offered = os::SendMessage(kHandleChannel, &offer, sizeof(offer), fds, 2);
  RETURN_IF_ERROR(prepared);
  if (absl::IsAborted(offered)) EndProcess(0);  // The client has left meanwhile, as it may.
  RETURN_IF_ERROR(offered);
  const auto ready = wire::MakeMessage<wire::WorkerReady>();
  if (all.says_ready) (void)os::SendMessage(kControlSocket, &ready, sizeof(ready));
  os::StartDetached([] {
    const absl::Status ended = loop.Run();
    if (absl::IsAborted(ended)) EndProcess(0);  // It looked into the channel: the client has gone.
    EndForViolation(session, std::string(ended.message()));
  });
  Watch(session);
}

}  // namespace

int WorkerMain(int argc, char** argv) {
  // Debian builds abseil with its deadlock detector on, which makes every lock several times
  // dearer.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  HoldSessionNice();
  const absl::StatusOr<WorkerOptions> options = ParseWorkerOptions(argc, argv);
  absl::Status status = options.status();
  if (status.ok() && options->try_sandbox) os::EndProcessNow(TrySandbox(*options).ok() ? 0 : 1);
  // Before it is hidden: by its own files in /proc.
  if (status.ok() && options->namespaces) status = os::EnterNamespaces(os::Network::kNone);
  os::HideFromOthers();
  // The probe too: a driver that cannot work so must not be offered.
  if (status.ok()) status = Confine(*options);
  LeaveDaemonsFolder();
  if (status.ok()) IncludeFolder::SweepAbandoned();
  if (status.ok())
    status = options->probe ? Probe(options->snapshot_fd, options->session.device_allow_list,
                                    options->session.limits.memory_bytes)
                            : RunSession(*options);
  if (status.ok()) EndProcess(0);
  const std::string message(status.message());
  Log(LogLevel::kError, "worker", message);
  // In place of a probe's snapshot.
  if (options.ok() && options->probe) (void)os::WriteWhole(options->snapshot_fd, message);
  if (options.ok() && !options->probe) Notice(wire::WorkerNoticeKind::kDriverError, message);
  EndProcess(1);
}

}  // namespace sluice::worker

int main(int argc, char** argv) {
  sluice::os::TakeCommandLine(&argc, &argv);
  sluice::wire::LetParsersBeQuiet();
  return sluice::worker::WorkerMain(argc, argv);
}
