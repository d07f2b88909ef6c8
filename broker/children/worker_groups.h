// SPDX-License-Identifier: Apache-2.0
//
// The control groups of the workers (Linux, version 2): the kernel limits what an account and each
// of its workers may have of the machine, however hostile the processes are.
//
//   TOP/                     the daemon's, by delegation (systemd's Delegate=, a container's own)
//     broker/                the broker, gateways, the allocator, the probe
//     accounts/              memory, processes: all but a reserve for those
//       uid-1000/            processor and disk by its share; memory, processes
//         worker-0123abcd/   memory, processes; out of memory ends all of it, and nobody else
//
// All names are made here; none comes from a client. A broker that crashed leaves its workers, and
// them in their groups: the next one finds them there, counts them in and removes each group when
// its worker has ended. Where the host has no such group, there are none, and Describe says why.
//
// Owner: the Broker. Loop thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "broker/config/sharing_sections.h"
#include "broker/event_loop.h"
#include "broker/os/scoped_handle.h"
#include "broker/tenants/tenant.h"

namespace sluice::broker {

class WorkerGroups {
 public:
  // Looks for a group of the daemon's and divides it: this process and all others in it go to
  // `broker/`. Before any child is started. An error only where the configuration requires groups.
  // `process`: as /proc/self.
  static absl::StatusOr<std::unique_ptr<WorkerGroups>> Create(
      const ControlGroupsConfig& config, EventLoop* loop,
      const std::string& process = "/proc/self");
  ~WorkerGroups();  // Gives the group back as it was, but for groups that have processes.

  // For operators: "cpu, memory, pids in /sys/fs/cgroup/...", or "none: " and why.
  std::string Describe() const;
  std::string Advice() const;      // The remedy, if something is missing; else empty.
  bool DividesProcessors() const;  // Between accounts, by their shares.

  // The group of a session's worker, which is yet to be started, for SpawnOptions::control_group.
  // `device_bytes`: of each device's memory, where the kernel counts that; 0: no limit. An invalid
  // descriptor where there are no groups.
  absl::StatusOr<os::UniqueFd> Add(uint64_t session, const Account& account, uint64_t device_bytes);

  // Of all of an account's workers, by the kernel's count. Nothing and 0 where there are no groups
  // of that kind, or no limit.
  struct Use {
    std::optional<uint64_t> memory_bytes;
    uint64_t memory_limit = 0;
    std::optional<uint64_t> processes;
    uint64_t process_limit = 0;
  };
  Use UseOf(const Account& account) const;

  struct End {
    std::string memory;              // Which limit of memory ended the worker; empty: none did.
    uint64_t refused_processes = 0;  // How often it was refused another process.
  };
  // When the session's worker has ended, or did not start: kills the processes that it has left
  // there, and removes the group as soon as they have ended. Returns what the kernel counted.
  End Remove(uint64_t session);

 private:
  struct State;
  explicit WorkerGroups(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

}  // namespace sluice::broker
