// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/pool/pool.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "broker/base/log.h"
#include "broker/os/local_socket.h"
#include "broker/os/poller.h"
#include "broker/os/threads.h"
#include "daemon/helpers/helper_process.h"
#include "daemon/worker/driver.h"
#include "daemon/worker/pool/pool_parts.h"
#include "daemon/worker/pool/session_end.h"
#include "daemon/worker/programs/compile_cache.h"
#include "daemon/worker/queues/kernel_watch.h"
#include "daemon/worker/served_client.h"
#include "daemon/worker/worker_files.h"
#include "proto/pool_messages.h"
#include "proto/spin.h"
#include "proto/status_macros.h"

namespace sluice::worker {
namespace {

// For what a session that has ended has given to the driver.
constexpr absl::Duration kDrainBound = absl::Milliseconds(wire::kPoolDrainMs);
// Of a thread that is in the driver, or in the gate, when its session ends.
constexpr int64_t kStopBoundNs = 2 * int64_t{wire::kPoolDrainMs} * 1'000'000;
constexpr int kLookMs = 20;          // While a session ends.
constexpr int kLookAtHeldMs = 1000;  // While the driver holds something of one that has ended.
constexpr size_t kMostHeld = 64;

// Shared virtual memory of each session has its own part of the address space.
constexpr uint64_t kSvmPartBytes = uint64_t{1} << 36;

constexpr uint64_t kControlKey = 1;
constexpr uint64_t kFirstMemberKey = 2;  // Two each: the channel's, and the control socket's.

struct Member {
  uint64_t key = 0;
  uint64_t svm_part = 1;  // 0 is that of workers of their own.
  os::UniqueFd channel;
  os::UniqueFd control;
  bool watches_channel = false;
  bool watches_control = false;
  std::unique_ptr<ServedClient> client;
  std::unique_ptr<KernelWatch> watch;  // If kernels have a limit of time.
  std::thread thread;
  std::atomic<int64_t> ending_since_ns = 0;  // 0: it serves.
  enum State { kServing, kDrained, kStuck };
  std::atomic<State> state = kServing;
  std::string left;   // If it is stuck: what has not ended.
  bool held = false;  // It is drained, and the driver has something of it all the same.
};

class Pool {
 public:
  Pool(const WorkerOptions& options, int control)
      : options_(options),
        control_(control),
        cache_(CompileCacheFolder(), options.session.cache_bytes) {}

  absl::Status Start();
  [[noreturn]] void Run();

 private:
  void OnControl();
  void Add(const wire::AddSession& add, std::vector<os::UniqueFd> fds);
  void OnReady(uint64_t key);
  void OnChannel(Member* member);
  void OnMemberControl(Member* member);
  // The member's thread.
  void Serve(Member* member);
  void NoteEnd(Member* member, const absl::Status& ended);
  // Ends it, or does nothing if it ends already.
  void End(Member* member);
  void Unwatch(Member* member);
  int PauseMs() const;
  // Takes out those that have ended meanwhile.
  void Sweep();
  void ExamineDriver();
  [[noreturn]] void EndAll(const std::string& why);

  const WorkerOptions options_;
  const int control_;
  bool broker_is_gone_ = false;
  PoolParts parts_;
  CompileCache cache_;
  std::unique_ptr<os::Poller> poller_;
  uint64_t next_key_ = kFirstMemberKey;
  std::vector<std::unique_ptr<Member>> members_;

  absl::Mutex devices_mu_;  // One session's at a time.
  std::atomic<bool> suspects_driver_ = false;
  std::atomic<bool> examines_ = false;
  absl::Mutex mu_;
  std::string end_ ABSL_GUARDED_BY(mu_);  // Why the pool is to end; "": it is not.
};

absl::Status Pool::Start() {
  ASSIGN_OR_RETURN(poller_, os::Poller::Create());
  RETURN_IF_ERROR(poller_->Add(kControlKey, control_, os::Poller::Interest::kReadable));
  parts_.takes_cpu_devices = options_.pool_takes_cpu_devices;
  parts_.turns.Share();
  RETURN_IF_ERROR(AttachTurns(options_.turns, &parts_.turns));
  parts_.on_failed = [this] {
    if (!suspects_driver_.exchange(true, std::memory_order_relaxed)) poller_->Wake();
  };
  RETURN_IF_ERROR(Driver::Load());
  if (const std::string unusable = UnusableFolder(); !unusable.empty())
    Log(LogLevel::kWarning, "worker", unusable);
  return parts_.printing.Start();
}

void Pool::Run() {
  std::vector<uint64_t> ready;
  while (true) {
    poller_->Wait(PauseMs(), &ready);
    for (const uint64_t key : ready) OnReady(key);
    Sweep();
    if (suspects_driver_.load(std::memory_order_relaxed)) ExamineDriver();
    std::string end;
    {
      absl::MutexLock lock(&mu_);
      end = end_;
    }
    if (!end.empty()) EndAll(end);
    if (broker_is_gone_ && members_.empty()) os::EndProcessNow(0);
  }
}

int Pool::PauseMs() const {
  int pause_ms = -1;
  for (const auto& member : members_) {
    if (member->ending_since_ns.load(std::memory_order_relaxed) == 0) continue;
    if (!member->held) return kLookMs;
    pause_ms = kLookAtHeldMs;
  }
  return pause_ms;
}

void Pool::OnReady(uint64_t key) {
  if (key == kControlKey) return OnControl();
  const auto found = std::find_if(members_.begin(), members_.end(), [key](const auto& member) {
    return member->key == key || member->key + 1 == key;
  });
  if (found == members_.end()) return;
  Member* const member = found->get();
  if (member->key == key) {
    if (member->watches_channel) OnChannel(member);
  } else if (member->watches_control) {
    OnMemberControl(member);
  }
}

void Pool::OnControl() {
  char buffer[wire::kMaxBrokerMessageBytes];
  std::vector<os::UniqueFd> fds;
  const absl::StatusOr<size_t> size =
      os::ReceiveMessage(control_, buffer, sizeof(buffer), &fds, wire::kAddSessionDescriptors);
  if (!size.ok() || *size == 0) {
    poller_->Remove(kControlKey, control_);
    broker_is_gone_ = true;  // Its sessions go on.
    return;
  }
  wire::AddSession add;
  if (wire::ParseMessage(buffer, *size, &add) && fds.size() == wire::kAddSessionDescriptors)
    Add(add, std::move(fds));
}

void Pool::Add(const wire::AddSession& add, std::vector<os::UniqueFd> fds) {
  auto member = std::make_unique<Member>();
  member->key = next_key_;
  next_key_ += 2;
  member->channel = std::move(fds[0]);
  member->control = std::move(fds[1]);
  while (std::any_of(members_.begin(), members_.end(), [&member](const auto& other) {
    return other->svm_part == member->svm_part;
  })) {
    ++member->svm_part;
  }
  SessionOptions options = options_.session;
  options.session_id = add.session_id;
  options.pool = &parts_;
  options.svm_address = wire::kSvmBaseAddress + member->svm_part * kSvmPartBytes;
  absl::StatusOr<std::unique_ptr<ServedClient>> client =
      ServedClient::Create(options, member->channel.get(), member->control.get());
  // Its client and the broker see both ends close.
  if (!client.ok()) {
    Log(LogLevel::kError, "worker", "a session cannot start",
        {{"session", HexId(add.session_id)}, {"reason", std::string(client.status().message())}});
    return;
  }
  member->client = *std::move(client);
  Session& session = member->client->session();
  member->client->AttachGrant();
  const auto on_overrun = [this](const std::string& why) {
    absl::MutexLock lock(&mu_);
    end_ = why;
    poller_->Wake();
  };
  session.builds().set_on_overrun(on_overrun);
  if (const uint64_t limit_ms = options.limits.kernel_ms; limit_ms != 0)
    member->watch = std::make_unique<KernelWatch>(&session.completions(), limit_ms, on_overrun);
  session.builds().set_after_each([this] { cache_.AfterBuild(); });
  if (options_.turns != WorkerOptions::Turns::kNone)
    session.completions().set_running(parts_.turns.running());
  member->watches_channel =
      poller_->Add(member->key, member->channel.get(), os::Poller::Interest::kReadable).ok();
  member->watches_control =
      poller_->Add(member->key + 1, member->control.get(), os::Poller::Interest::kReadable).ok();
  Member* const added = member.get();
  members_.push_back(std::move(member));
  added->thread = std::thread([this, added] { Serve(added); });
}

void Pool::Serve(Member* member) {
  ServedClient& client = *member->client;
  Session& session = client.session();
  session.AttachThread();
  const int control = member->control.get();
  session.set_on_lost_device([control](const std::string& what) {
    Notice(control, wire::WorkerNoticeKind::kDriverError, what);
  });
  absl::Status ended;
  {
    // Loaders and drivers start with the first question, and two at once were one too many for one
    // driver: one of them was told of no device, and the process crashed.
    absl::MutexLock lock(&devices_mu_);
    ended = session.AddDevices();
  }
  // The client cannot see our log.
  if (!ended.ok()) {
    client.TellEnd(absl::StrCat("cannot start: ", ended.message()));
    Notice(control, wire::WorkerNoticeKind::kDriverError, std::string(ended.message()));
  }
  const absl::Status offered = client.OfferRings();
  if (ended.ok() && offered.ok()) {
    client.SayReady();
    ended = client.loop().Run();
    NoteEnd(member, ended);
  }
  End(member);
  member->left = DrainSession(session, kDrainBound);
  member->state.store(member->left.empty() ? Member::kDrained : Member::kStuck,
                      std::memory_order_release);
  poller_->Wake();
}

void Pool::NoteEnd(Member* member, const absl::Status& ended) {
  if (ended.ok() || absl::IsAborted(ended)) return;  // It was stopped, or its client has gone.
  const std::string violation(ended.message());
  Log(LogLevel::kWarning, "worker", "session ended: the client broke the protocol",
      {{"session", HexId(member->client->session().options().session_id)},
       {"violation", violation}});
  Notice(member->control.get(), wire::WorkerNoticeKind::kViolation, violation);
  member->client->TellEnd(absl::StrCat("protocol violation: ", violation));
}

void Pool::End(Member* member) {
  int64_t serving = 0;
  if (!member->ending_since_ns.compare_exchange_strong(serving, wire::MonotonicNs())) return;
  member->client->loop().Stop();
  poller_->Wake();
}

void Pool::OnChannel(Member* member) {
  const absl::Status status = member->client->session().imports().Receive();
  if (status.ok()) return;
  poller_->Remove(member->key, member->channel.get());
  member->watches_channel = false;
  NoteEnd(member, status);
  // A thread that sends there waits for nobody.
  os::HangUp(member->channel.get());
  End(member);
}

void Pool::OnMemberControl(Member* member) {
  const ServedClient::Control said = member->client->OnControl();
  if (said.gone) {
    poller_->Remove(member->key + 1, member->control.get());
    member->watches_control = false;
    member->client->session().quota().grant().OnLost();
  } else if (said.terminate.has_value()) {
    Log(LogLevel::kInfo, "worker", "ended by the broker",
        {{"session", HexId(member->client->session().options().session_id)},
         {"reason", *said.terminate}});
    member->client->TellEnd(*said.terminate);
    End(member);
  }
}

void Pool::Unwatch(Member* member) {
  if (member->watches_channel) poller_->Remove(member->key, member->channel.get());
  if (member->watches_control) poller_->Remove(member->key + 1, member->control.get());
  member->watches_channel = member->watches_control = false;
}

void Pool::Sweep() {
  const int64_t now = wire::MonotonicNs();
  for (const auto& member : members_) {
    const int64_t since = member->ending_since_ns.load(std::memory_order_relaxed);
    const Member::State state = member->state.load(std::memory_order_acquire);
    if (state == Member::kStuck)
      EndAll(absl::StrCat("a session that has ended left ", member->left, ", which does not end"));
    if (state == Member::kServing && since != 0 && now - since > kStopBoundNs)
      EndAll("the thread of a session that has ended is still in the driver");
  }
  std::erase_if(members_, [this](const std::unique_ptr<Member>& member) {
    if (member->state.load(std::memory_order_acquire) != Member::kDrained) return false;
    if (member->thread.joinable()) {
      member->thread.join();
      Unwatch(member.get());
      // Client and broker see that it has ended, whatever it still builds.
      os::HangUp(member->channel.get());
      os::HangUp(member->control.get());
    }
    Session& session = member->client->session();
    if (!session.builds().stopped()) return false;
    member->held = !HeldByDriver(session).empty();
    return !member->held;
  });
  const auto held = std::count_if(members_.begin(), members_.end(),
                                  [](const auto& member) { return member->held; });
  if (static_cast<size_t>(held) > kMostHeld)
    EndAll(absl::StrCat("the driver keeps memory of ", held, " sessions that have ended"));
}

void Pool::ExamineDriver() {
  if (examines_.exchange(true, std::memory_order_acq_rel)) return;
  suspects_driver_.store(false, std::memory_order_relaxed);
  os::StartDetached([this] {
    const std::string found = parts_.contexts.Examine();
    if (!found.empty()) {
      absl::MutexLock lock(&mu_);
      end_ = found;
    }
    examines_.store(false, std::memory_order_release);
    poller_->Wake();
  });
}

void Pool::EndAll(const std::string& why) {
  const std::string text = absl::StrCat("the pool that this session was in has ended: ", why);
  Log(LogLevel::kWarning, "worker", "a pool ends", {{"reason", why}});
  Notice(control_, wire::WorkerNoticeKind::kInfo, absl::StrCat("a pool ends: ", why));
  for (const auto& member : members_) {
    if (member->state.load(std::memory_order_acquire) == Member::kServing)
      member->client->TellEnd(text);
  }
  os::EndProcessNow(4);
}

}  // namespace

absl::Status RunPool(const WorkerOptions& options, int control) {
  static Pool& pool = *new Pool(options, control);  // Lives until the process ends.
  RETURN_IF_ERROR(pool.Start());
  pool.Run();
}

}  // namespace sluice::worker
