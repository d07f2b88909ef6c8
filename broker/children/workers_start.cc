// SPDX-License-Identifier: Apache-2.0
// How a session gets its worker: one of its own, or a pool's.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "broker/base/log.h"
#include "broker/children/workers.h"
#include "proto/pool_messages.h"

namespace sluice::broker {
namespace {

constexpr int kWorkerHandleChannelFd = 3;
constexpr int kWorkerControlFd = 4;
constexpr int kWorkerTurnOrdersFd = 5;
constexpr int kWorkerTurnWordsFd = 6;

// Of two limits; 0: none.
uint64_t Smaller(uint64_t one, uint64_t other) {
  return one == 0 || other == 0 ? std::max(one, other) : std::min(one, other);
}

}  // namespace

uint64_t MemoryLimit(const LimitsConfig& limits, const Account& account) {
  return Smaller(account.limits.memory_bytes, limits.memory_bytes);
}

uint64_t DeviceMemoryLimit(const LimitsConfig& limits, const Account& account) {
  const uint64_t own = account.limits.device_memory;
  return own != 0 ? own : limits.device_memory_per_account;
}

uint64_t ReportedMemory(const LimitsConfig& limits, const Account& account) {
  return Smaller(MemoryLimit(limits, account), DeviceMemoryLimit(limits, account));
}

bool Workers::MayPool(const Account& account) const {
  if (account.network) return false;
  return account.pools == Pooling::kAsConfigured ? pool_config_.enabled
                                                 : account.pools == Pooling::kOn;
}

std::string Workers::WhyNoPool(const SessionRequest& request) const {
  if (request.tenant.account.network) return "it came over the network";
  if (!MayPool(request.tenant.account)) return "the configuration has none for it";
  if ((request.flags & wire::kOpenSessionRefusesPool) != 0)
    return "its program refuses (SLUICE_POOL)";
  if ((request.flags & wire::kOpenSessionNeedsWorker) != 0)
    return "its context's properties or devices need a worker of their own";
  if ((request.flags & wire::kOpenSessionMayPool) == 0) return "its client knows of none";
  if (sync_ || (request.flags & wire::kOpenSessionSync) != 0) return "it is in the debug mode";
  return "";
}

std::vector<std::string> Workers::Arguments(const SessionRequest& request) const {
  const bool sync = sync_ || (request.flags & wire::kOpenSessionSync) != 0;
  return {
      absl::StrCat("--limit-memory=", MemoryLimit(limits_, request.tenant.account)),
      absl::StrCat("--limit-account-memory=", DeviceMemoryLimit(limits_, request.tenant.account)),
      absl::StrCat("--limit-objects=", limits_.objects),
      absl::StrCat("--limit-in-flight=", limits_.in_flight_commands),
      absl::StrCat("--limit-program-bytes=", limits_.program_bytes),
      absl::StrCat("--limit-build-ms=", limits_.build_time_ms),
      absl::StrCat("--limit-kernel-ms=", limits_.kernel_time_ms),
      absl::StrCat("--sync=", sync ? 1 : 0),
      "--says-ready=1"};
}

absl::StatusOr<os::ChildProcess> Workers::Launch(uint64_t id, const SessionRequest& request,
                                                 std::optional<int> channel, int control,
                                                 int output) {
  const Account& account = request.tenant.account;
  // Of a pool the limit of one session is none; its account's holds.
  const absl::StatusOr<os::UniqueFd> group =
      groups_->Add(id, account, channel.has_value() ? MemoryLimit(limits_, account) : 0);
  if (!group.ok()) return group.status();
  std::vector<std::string> arguments = Arguments(request);
  arguments.push_back(absl::StrCat("--session-id=", HexId(id)));
  std::vector<std::pair<int, int>> descriptors = {{control, kWorkerControlFd}};
  if (channel.has_value()) {
    descriptors.emplace_back(*channel, kWorkerHandleChannelFd);
  } else {
    arguments.push_back("--pool=1");
    arguments.push_back(absl::StrCat("--pool-cpu=", pool_config_.cpu_devices ? 1 : 0));
  }
  const TurnGiver::Pages pages = turns_.Add(id, account);
  if (pages.orders.valid()) {
    arguments.push_back(absl::StrCat("--turns=", turns_mode_ == TurnsConfig::Mode::kOn ? "on"
                                                 : turns_mode_ == TurnsConfig::Mode::kOff
                                                     ? "off"
                                                     : "auto"));
    descriptors.emplace_back(pages.orders.get(), kWorkerTurnOrdersFd);
    descriptors.emplace_back(pages.words.get(), kWorkerTurnWordsFd);
  }
  absl::StatusOr<os::ChildProcess> worker =
      launcher_->Launch(std::move(arguments), std::move(descriptors), request.tenant.domain.name,
                        output, group->get());
  if (!worker.ok()) {
    turns_.Remove(id);
    groups_->Remove(id);
  }
  return worker;
}

absl::Status Workers::StartWorker(const SessionRequest& request, int channel, int control,
                                  Session* session, SessionInfo* info) {
  const uint64_t id = session->id;
  absl::StatusOr<os::UniqueFd> output = session->output.Open({"session", HexId(id)});
  if (!output.ok()) return output.status();
  absl::StatusOr<os::ChildProcess> worker = Launch(id, request, channel, control, output->get());
  if (!worker.ok()) return worker.status();
  session->worker = *std::move(worker);
  session->exit_watch.Start(&session->worker,
                            [this, id](const os::ExitStatus& status) { OnExit(id, status); });
  info->worker_pid = session->worker.pid();
  return absl::OkStatus();
}

absl::Status Workers::JoinPool(const SessionRequest& request, int channel, int control,
                               Session* session, SessionInfo* info) {
  const Tenant& tenant = request.tenant;
  // Sessions with other limits, after the configuration has changed, go into another.
  const std::string key =
      absl::StrCat(tenant.domain.name, "\n", tenant.account.name, "\n", pool_config_.cpu_devices,
                   "\n", absl::StrJoin(Arguments(request), "\n"));
  const absl::StatusOr<Pools::Place> place =
      pools_.Join(key, session->id, NewId(), channel, control,
                  [this, &request](uint64_t pool, int pool_control, int output) {
                    return Launch(pool, request, std::nullopt, pool_control, output);
                  });
  if (!place.ok()) return place.status();
  session->pool = info->pool = place->pool;
  info->worker_pid = place->pid;
  return absl::OkStatus();
}

}  // namespace sluice::broker
