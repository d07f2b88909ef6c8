// SPDX-License-Identifier: Apache-2.0
//
// The client's side of the broker's socket, as far as sluicectl needs it: say hello, read the
// snapshot, open a session to see whether one can be had. Single thread; validates what the daemon
// sends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "broker/os/scoped_handle.h"
#include "deploy/sluicectl/quotas.h"

namespace sluice::ctl {

struct DeviceSummary {
  std::string name;
  std::string vendor;
  std::string type;  // "CPU", "GPU", "accelerator", "custom".
  std::string driver_version;
  std::string device_version;
  uint32_t compute_units = 0;
  uint64_t global_memory_bytes = 0;
};

struct PlatformSummary {
  std::string name;
  std::string vendor;
  std::string version;
  std::vector<DeviceSummary> devices;
};

struct Greeting {
  os::UniqueFd socket;   // Stays connected; closing it ends what was opened over it.
  std::string problem;   // Why the daemon has no devices; empty if it has.
  std::string snapshot;  // Bytes of a PlatformSnapshot.
  uint32_t session_limit = 0;
  bool tells_quotas = false;  // To AskQuotas.
};

// Status codes are those of ConnectLocal; kPermissionDenied also if the daemon's policy refuses.
absl::StatusOr<Greeting> Greet(const std::string& socket_path, int timeout_ms);

// Of this user's account, what the daemon says that it has and may have.
struct ToldQuotas {
  std::string account;
  std::vector<ShownQuota> quotas;
};
absl::StatusOr<ToldQuotas> AskQuotas(int socket, int timeout_ms);

// OK if the daemon starts a worker for us and that gets ready; else what either says. It ends as
// this returns.
absl::Status TrySession(int socket, int timeout_ms);

absl::StatusOr<std::vector<PlatformSummary>> DecodeSnapshot(const std::string& bytes);

}  // namespace sluice::ctl
