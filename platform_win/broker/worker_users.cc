// SPDX-License-Identifier: Apache-2.0
#include "broker/children/worker_users.h"

#include "broker/os/process.h"

namespace sluice::broker {

bool IsTenantUid(uid_t) { return false; }

// Every child has the same restricted token (restricted_token.h): Windows has no users without an
// account. CheckConfig has refused a configuration that names a user.
absl::StatusOr<WorkerUsers> WorkerUsers::Create(const Config&) { return WorkerUsers(); }

std::string WorkerUsers::Describe() const {
  return os::IsPrivileged() ? "LocalService, restricted" : "the daemon's own, restricted";
}

// Without a cache of its own: a folder that one restricted worker may write, all others may write.
absl::StatusOr<WorkerUsers::Tenant> WorkerUsers::For(const std::string&) { return Tenant(); }

std::string WorkerUsers::CacheFolderOf(const std::string&) const { return ""; }

}  // namespace sluice::broker
