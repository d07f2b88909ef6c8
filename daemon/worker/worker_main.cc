// SPDX-License-Identifier: Apache-2.0
// sluice-worker: one session's process, with the real driver in it. Started by the broker, never by
// a person:
//
//   sluice-worker --session-id=HEX [limits]     descriptor 3: handle channel to the client, 4:
//   control socket to the broker
//   sluice-worker --pool=1 --session-id=HEX ... several sessions' (pool/pool.h); descriptor 4 alone
//   sluice-worker --probe --snapshot-fd=N       writes a PlatformSnapshot to descriptor N and ends
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
#include "broker/os/threads.h"
#include "daemon/helpers/confined_calls.h"
#include "daemon/helpers/helper_process.h"
#include "daemon/helpers/own_namespaces.h"
#include "daemon/worker/pool/pool.h"
#include "daemon/worker/probe.h"
#include "daemon/worker/programs/compile_cache.h"
#include "daemon/worker/programs/include_folder.h"
#include "daemon/worker/queues/kernel_watch.h"
#include "daemon/worker/served_client.h"
#include "daemon/worker/worker_files.h"
#include "daemon/worker/worker_options.h"
#include "daemon/worker/worker_process.h"
#include "proto/broker_messages.h"
#include "proto/quiet_parsing.h"
#include "proto/status_macros.h"

namespace sluice::worker {
namespace {

constexpr int kHandleChannel = 3;
constexpr int kControlSocket = 4;
constexpr absl::Duration kAfterClient = absl::Seconds(2);  // Far more than an end takes by itself.

[[noreturn]] void EndProcess(int code) {
  // Not exit(): drivers' destructors wait for kernels that may never end. The kernel takes
  // everything back.
  os::EndProcessNow(code);
}

// The driver is stuck in a compiler, perhaps with locks held, or in a kernel: the session ends.
void EndAfterOverrun(ServedClient& client, const std::string& why) {
  Log(LogLevel::kWarning, "worker", "session ended: over a limit of time",
      {{"session", HexId(client.session().options().session_id)}, {"reason", why}});
  Notice(kControlSocket, wire::WorkerNoticeKind::kInfo, why);
  client.TellEnd(why);
  EndProcess(4);
}

// Handles one message of the broker. False once the broker is gone.
bool OnControl(ServedClient& client) {
  const ServedClient::Control said = client.OnControl();
  if (!said.terminate.has_value()) return !said.gone;
  Log(LogLevel::kInfo, "worker", "ended by the broker",
      {{"session", HexId(client.session().options().session_id)}, {"reason", *said.terminate}});
  client.TellEnd(*said.terminate);
  EndProcess(0);
}

[[noreturn]] void EndForViolation(ServedClient& client, const std::string& violation) {
  Log(LogLevel::kWarning, "worker", "session ended: the client broke the protocol",
      {{"session", HexId(client.session().options().session_id)}, {"violation", violation}});
  Notice(kControlSocket, wire::WorkerNoticeKind::kViolation, violation);
  client.TellEnd(absl::StrCat("protocol violation: ", violation));
  EndProcess(3);
}

// The client's end of the handle channel: descriptors to import, or its end.
void OnHandleChannel(ServedClient& client) {
  const absl::Status status = client.session().imports().Receive();
  if (absl::IsAborted(status)) EndProcess(0);
  if (!status.ok()) EndForViolation(client, std::string(status.message()));
}

// Once the client has gone, this ends the process if nobody else does. The main thread may be in a
// driver, which it loads before it looks, and the broker may be gone, whose timer would do it.
void EndSoonAfterClient() {
  os::StartDetached([] {
    if (!os::AwaitHangUp(kHandleChannel).ok()) return;
    absl::SleepFor(kAfterClient);
    EndProcess(0);
  });
}

// The main thread: the client's end ends us; the broker may ask for numbers.
[[noreturn]] void Watch(ServedClient& client) {
  const absl::StatusOr<std::unique_ptr<os::Poller>> poller = os::Poller::Create();
  if (!poller.ok() ||
      !(*poller)->Add(kHandleChannel, kHandleChannel, os::Poller::Interest::kReadable).ok() ||
      !(*poller)->Add(kControlSocket, kControlSocket, os::Poller::Interest::kReadable).ok()) {
    Notice(kControlSocket, wire::WorkerNoticeKind::kDriverError,
           "a worker cannot wait for its client");
    EndProcess(1);
  }
  std::vector<uint64_t> ready;
  while (true) {
    (*poller)->Wait(-1, &ready);
    for (const uint64_t key : ready) {
      if (key == kHandleChannel) OnHandleChannel(client);
      if (key == kControlSocket && !OnControl(client)) {
        (*poller)->Remove(kControlSocket, kControlSocket);  // The broker is gone: we stay.
        client.session().quota().grant().OnLost();
      }
    }
  }
}

// Before the first driver is loaded, and the first thread started.
absl::Status Confine(const WorkerOptions& options) {
  if (options.confine_files) {
    absl::Status confined =
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

absl::Status RunSession(const WorkerOptions& all) {
  const SessionOptions& options = all.session;
  ASSIGN_OR_RETURN(std::unique_ptr<ServedClient> made,
                   ServedClient::Create(options, kHandleChannel, kControlSocket));
  EndSoonAfterClient();
  // All of this lives until the process ends.
  static ServedClient& client = *made.release();
  Session& session = client.session();
  RETURN_IF_ERROR(AttachTurns(all.turns, &session.turns()));
  if (all.turns != WorkerOptions::Turns::kNone)
    session.completions().set_running(session.turns().running());
  client.AttachGrant();
  session.set_on_lost_device([](const std::string& what) {
    Notice(kControlSocket, wire::WorkerNoticeKind::kDriverError, what);
  });
  const absl::Status prepared = Prepare(session);
  // The client cannot see our log.
  if (!prepared.ok()) client.TellEnd(absl::StrCat("cannot start: ", prepared.message()));
  session.builds().set_on_overrun([](const std::string& why) { EndAfterOverrun(client, why); });
  if (const uint64_t limit_ms = options.limits.kernel_ms; limit_ms != 0) {
    new KernelWatch(&session.completions(), limit_ms,
                    [](const std::string& why) { EndAfterOverrun(client, why); });
  }
  static CompileCache& cache = *new CompileCache(CompileCacheFolder(), options.cache_bytes);
  session.builds().set_after_each([] { cache.AfterBuild(); });
  const absl::Status offered = client.OfferRings();
  RETURN_IF_ERROR(prepared);
  if (absl::IsAborted(offered)) EndProcess(0);  // The client has left meanwhile, as it may.
  RETURN_IF_ERROR(offered);
  if (all.says_ready) client.SayReady();
  os::StartDetached([] {
    const absl::Status ended = client.loop().Run();
    if (absl::IsAborted(ended)) EndProcess(0);  // It looked into the channel: the client has gone.
    EndForViolation(client, std::string(ended.message()));
  });
  Watch(client);
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
    status = options->probe  ? Probe(options->snapshot_fd, options->session.device_allow_list,
                                     options->session.limits.memory_bytes)
             : options->pool ? RunPool(*options, kControlSocket)
                             : RunSession(*options);
  if (status.ok()) EndProcess(0);
  const std::string message(status.message());
  Log(LogLevel::kError, "worker", message);
  // In place of a probe's snapshot.
  if (options.ok() && options->probe) (void)os::WriteWhole(options->snapshot_fd, message);
  if (options.ok() && !options->probe)
    Notice(kControlSocket, wire::WorkerNoticeKind::kDriverError, message);
  EndProcess(1);
}

}  // namespace sluice::worker

int main(int argc, char** argv) {
  sluice::os::TakeCommandLine(&argc, &argv);
  sluice::wire::LetParsersBeQuiet();
  return sluice::worker::WorkerMain(argc, argv);
}
