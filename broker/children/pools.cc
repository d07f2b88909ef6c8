// SPDX-License-Identifier: Apache-2.0
#include "broker/children/pools.h"

#include <algorithm>
#include <utility>

#include "broker/base/log.h"
#include "broker/os/local_socket.h"
#include "proto/pool_messages.h"

namespace sluice::broker {
namespace {

constexpr int kPoolMessagesPerWakeUp = 16;

}  // namespace

Pools::~Pools() { Stop(); }

void Pools::Stop() {
  for (auto& [id, pool] : pools_) {
    Close(pool.get());
    pool->exit_watch.Stop();
    KillAndReap(&pool->worker, "pool");
    on_ended_(id, {}, {});
  }
  pools_.clear();
}

absl::StatusOr<Pools::Place> Pools::Join(const std::string& key, uint64_t session, uint64_t new_id,
                                         int channel, int control, const Launch& launch) {
  for (auto& [id, pool] : pools_) {
    if (pool->closed || pool->key != key || pool->sessions.size() >= config_.max_sessions) continue;
    if (Send(pool.get(), session, channel, control)) return Place{id, pool->worker.pid()};
    Close(pool.get());  // It does not listen: its sessions may end, and no more come.
  }
  absl::StatusOr<Pool*> pool = Start(key, new_id, launch);
  if (!pool.ok()) return pool.status();
  if (!Send(*pool, session, channel, control))
    return absl::InternalError("a new worker for several sessions does not listen");
  return Place{(*pool)->id, (*pool)->worker.pid()};
}

absl::StatusOr<Pools::Pool*> Pools::Start(const std::string& key, uint64_t id,
                                          const Launch& launch) {
  absl::StatusOr<std::pair<os::UniqueFd, os::UniqueFd>> sockets =
      os::CreateSocketPair(os::FirstEnd::kStays);
  if (!sockets.ok()) return sockets.status();
  if (absl::Status set = os::SetNonBlocking(sockets->first.get(), true); !set.ok()) return set;
  os::RefuseDescriptors(sockets->first.get());
  auto pool = std::make_unique<Pool>(loop_);
  pool->id = id;
  pool->key = key;
  pool->control = std::move(sockets->first);
  absl::StatusOr<os::UniqueFd> output = pool->output.Open({"pool", HexId(id)});
  if (!output.ok()) return output.status();
  absl::StatusOr<os::ChildProcess> worker = launch(id, sockets->second.get(), output->get());
  if (!worker.ok()) return worker.status();
  pool->worker = *std::move(worker);
  pool->exit_watch.Start(&pool->worker,
                         [this, id](const os::ExitStatus& status) { OnExit(id, status); });
  pool->control_watch = loop_->Watch(pool->control.get(), [this, id] { OnControl(id); });
  Log(LogLevel::kInfo, "broker", "pool opened",
      {{"pool", HexId(id)}, {"worker_pid", pool->worker.pid()}});
  Pool* const started = pool.get();
  pools_[id] = std::move(pool);
  return started;
}

bool Pools::Send(Pool* pool, uint64_t session, int channel, int control) {
  auto message = wire::MakeMessage<wire::AddSession>();
  message.session_id = session;
  const int fds[wire::kAddSessionDescriptors] = {channel, control};
  if (!os::SendMessage(pool->control.get(), &message, sizeof(message), fds,
                       wire::kAddSessionDescriptors)
           .ok()) {
    return false;
  }
  loop_->CancelTimer(&pool->idle_timer);
  pool->sessions.insert(session);
  return true;
}

void Pools::Leave(uint64_t id, uint64_t session) {
  const auto found = pools_.find(id);
  if (found == pools_.end()) return;
  Pool* const pool = found->second.get();
  pool->sessions.erase(session);
  if (pool->sessions.empty()) ArmIdleTimer(pool);
}

void Pools::ArmIdleTimer(Pool* pool) {
  if (pool->closed || pool->idle_timer != 0) return;
  pool->idle_timer = loop_->AddTimer(config_.idle_seconds * 1000, [this, id = pool->id] {
    const auto found = pools_.find(id);
    if (found == pools_.end()) return;
    found->second->idle_timer = 0;
    if (found->second->sessions.empty()) Close(found->second.get());
  });
}

// At the end of its control socket the worker ends with its last session.
void Pools::Close(Pool* pool) {
  pool->closed = true;
  loop_->CancelTimer(&pool->idle_timer);
  loop_->Unwatch(&pool->control_watch);
  pool->control.reset();
}

void Pools::Kill(uint64_t id) {
  const auto found = pools_.find(id);
  if (found == pools_.end()) return;
  Close(found->second.get());
  found->second->worker.KillGroup();  // OnExit follows.
}

void Pools::OnControl(uint64_t id) {
  for (int i = 0; i < kPoolMessagesPerWakeUp; ++i) {
    const auto found = pools_.find(id);
    if (found == pools_.end() || !found->second->control.valid()) return;
    Pool* const pool = found->second.get();
    char packet[wire::kMaxBrokerMessageBytes];
    const absl::StatusOr<size_t> size =
        os::ReceiveMessage(pool->control.get(), packet, sizeof(packet), nullptr, 0);
    if (absl::IsUnavailable(size.status())) return;
    wire::WorkerNotice notice;
    if (!size.ok() || *size == 0 || !wire::ParseMessage(packet, *size, &notice) ||
        !wire::IsTerminated(notice.text)) {
      return Close(pool);
    }
    if (!pool->notices.Allow(MonotonicMs())) continue;
    Log(LogLevel::kWarning, "worker", notice.text,
        {{"pool", HexId(id)}, {"suppressed", pool->notices.TakeSuppressed()}});
  }
}

void Pools::OnExit(uint64_t id, const os::ExitStatus& status) {
  OnControl(id);  // Its last message: why it ended.
  const auto found = pools_.find(id);
  if (found == pools_.end()) return;
  const std::unique_ptr<Pool> pool = std::move(found->second);
  pools_.erase(found);
  Close(pool.get());
  pool->output.Finish();
  Log(pool->sessions.empty() ? LogLevel::kInfo : LogLevel::kWarning, "broker", "pool ended",
      {{"pool", HexId(id)},
       {"worker", status.Describe()},
       {"sessions", static_cast<int64_t>(pool->sessions.size())}});
  on_ended_(id, status, pool->sessions);
}

bool Pools::Includes(pid_t pid) const {
  return std::any_of(pools_.begin(), pools_.end(),
                     [pid](const auto& entry) { return entry.second->worker.pid() == pid; });
}

}  // namespace sluice::broker
