// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/pool/session_end.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "broker/base/log.h"
#include "broker/os/threads.h"
#include "daemon/worker/handlers/handlers.h"
#include "daemon/worker/pool/pool_parts.h"
#include "daemon/worker/queues/queue.h"

namespace sluice::worker {
namespace {

constexpr absl::Duration kShortestLook = absl::Microseconds(50);
constexpr absl::Duration kLongestLook = absl::Milliseconds(5);

template <typename T>
void ReleaseAll(Session& session) {
  for (const uint64_t id : session.objects().IdsOf<T>()) {
    pb::ReleaseObject release;
    release.set_id(id);
    wire::Frame frame;
    pb::Answer answer;
    Call call{frame, answer};
    (void)HandleReleaseObject(session, release, call);
  }
}

// Looks again and again, and after the driver's events meanwhile, for what is still under way (""
// is nothing). Returns that if it has not ended by the deadline.
template <typename F>
std::string Await(Session& session, absl::Time deadline, F&& under_way) {
  absl::Duration pause = kShortestLook;
  while (true) {
    std::string what = under_way();
    if (what.empty() || absl::Now() > deadline) return what;
    if (session.completions().polls()) (void)session.completions().Poll();
    session.FlushTouched();
    absl::SleepFor(pause);
    pause = std::min(2 * pause, kLongestLook);
  }
}

std::string CommandsUnderWay(Session& session) {
  if (!session.completions().idle()) return "an event of the driver's";
  if (session.finishers.load(std::memory_order_acquire) != 0) return "a clFinish of its client's";
  return "";
}

// Everything that was given to the driver has ended, told of or not.
std::string AwaitCommands(Session& session, absl::Time deadline) {
  std::vector<std::shared_ptr<QueueObject>> queues;
  for (const uint64_t id : session.objects().IdsOf<QueueObject>())
    queues.push_back(session.objects().Find<QueueObject>(id));
  for (const auto& queue : queues) {
    (void)queue->Mark(session);
    cl().clFlush(queue->handle.get());
  }
  session.FlushTouched();
  std::vector<std::shared_ptr<ContextObject>> contexts;
  std::vector<cl_command_queue> handles;
  for (const auto& queue : queues) handles.push_back(queue->handle.get());
  for (const uint64_t id : session.objects().IdsOf<ContextObject>()) {
    contexts.push_back(session.objects().Find<ContextObject>(id));
    handles.push_back(contexts.back()->own_queue.get());
    for (const auto& timed : contexts.back()->timed_queues)
      if (timed.second) handles.push_back(timed.second.get());
  }
  // On a thread of its own, which may wait for ever: then this process ends.
  const auto finished = std::make_shared<std::atomic<bool>>(false);
  os::StartDetached([finished, handles] {
    for (const cl_command_queue handle : handles) cl().clFinish(handle);
    finished->store(true, std::memory_order_release);
  });
  return Await(session, deadline, [&]() -> std::string {
    if (!finished->load(std::memory_order_acquire)) return "a command in a queue";
    return CommandsUnderWay(session);
  });
}

}  // namespace

std::string HeldByDriver(Session& session) {
  if (const uint64_t bytes = session.heap().used_bytes(); bytes != 0)
    return absl::StrCat(bytes, " bytes of its heap");
  if (const uint64_t bytes = session.svm_heap().used_bytes(); bytes != 0)
    return absl::StrCat(bytes, " bytes of its shared virtual memory");
  if (const auto watched = session.watched_by_driver.load(std::memory_order_acquire); watched != 0)
    return absl::StrCat(watched, " objects that the driver holds");
  if (session.replies().feeding()) return "a reply";
  return "";
}

std::string DrainSession(Session& session, absl::Duration bound) {
  const absl::Time deadline = absl::Now() + bound;
  session.AttachThread();
  PoolParts& pool = *session.options().pool;
  session.builds().Stop();
  session.replies().Close();
  session.quota().grant().OnLost();
  session.transfers().FailAll();
  pool.printing.Forget(&session.replies());
  ReleaseAll<EventObject>(session);
  if (std::string left = AwaitCommands(session, deadline); !left.empty()) return left;
  // A command of ours that ended last may have left a step behind.
  session.transfers().FailAll();
  session.transfers().Clear();
  ReleaseAll<KernelObject>(session);
  ReleaseAll<ProgramObject>(session);
  ReleaseAll<SamplerObject>(session);
  ReleaseAll<MemoryObject>(session);
  ReleaseAll<SvmObject>(session);
  ReleaseAll<FailedObject>(session);
  ReleaseAll<QueueObject>(session);
  ReleaseAll<ContextObject>(session);
  session.kept_events().Sweep();
  const std::string held = Await(session, deadline, [&] {
    session.kept_events().Sweep();
    std::string commands = CommandsUnderWay(session);
    return commands.empty() ? HeldByDriver(session) : commands;
  });
  if (std::string commands = CommandsUnderWay(session); !commands.empty()) return commands;
  if (!held.empty()) {
    Log(LogLevel::kWarning, "worker", "the driver keeps memory of a session that has ended",
        {{"session", HexId(session.options().session_id)}, {"memory", held}});
  }
  session.completions().ForgetCallbacks();
  pool.printing.Forget(&session.replies());
  return "";
}

}  // namespace sluice::worker
