// SPDX-License-Identifier: Apache-2.0
//
// Chooses the user that each of the daemon's children runs as, and the folder of its compile cache.
// On a CPU device a kernel is native code with its worker's rights. So if the broker is root and
// the operator names no user, every client identity has a user id of its own. The system then keeps
// one tenant's worker from signalling another's and from its files.
//
// These ids stand in no passwd. They come from kFirstTenantUid on, which distributions leave alone
// (systemd's UIDS-GIDS.md: 1879048192 to 2147483647 is unused). An identity keeps its id over
// restarts: its cache directory belongs to that id, and is the record. A container's name lasts as
// long as its broker (tenants/tenant_finder.h): the next broker removes its directory.
//
// Whoever can invent names (a gateway that has been taken over, a user with many local ids) must
// not fill the disk with them. So kMostIdentities of a kind are remembered; beyond that, those
// unused for longest are forgotten, with their directories. A freed id is used again only when all
// have been given out.
//
// Owned by WorkerLauncher. Event loop thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "broker/config/config.h"
#include "broker/os/sandbox.h"
#include "broker/os/types.h"

namespace sluice::broker {

inline constexpr uid_t kFirstTenantUid = 1879048192;
inline constexpr uid_t kLastTenantUid = 2147483647;

// A tenant's worker, or a service without a user of its own: of this daemon, or of one before it.
bool IsTenantUid(uid_t uid);  // On Windows nobody is.

class WorkerUsers {
 public:
  // A user that the operator names and that does not exist is an error.
  static absl::StatusOr<WorkerUsers> Create(const Config& config);

  // Of the gateways, the allocator and the probe; nothing if they stay with the broker's.
  const std::optional<os::UserIdentity>& service() const { return service_; }
  // For operators: "sluice", "one for each identity"; empty for the broker's own.
  std::string Describe() const;

  struct Tenant {
    std::optional<os::UserIdentity> user;  // Nothing: the broker's own.
    std::string cache_directory;           // Empty: that user's own.
  };
  // `identity_name` as Policy has it; "" for the probe. Makes the directory.
  absl::StatusOr<Tenant> For(const std::string& identity_name);

  // The directory above the cache folders of identities; "" if they have none. And the folder of
  // one identity, which is not made.
  const std::string& CacheRoot() const { return cache_root_.empty() ? domain_root_ : cache_root_; }
  std::string CacheFolderOf(const std::string& identity_name) const;

  // Of network clients, and of local users.
  static constexpr size_t kMostIdentities = 4096;

 private:
  WorkerUsers() = default;

  struct Known {
    uid_t uid = 0;
    int64_t last_used_ns = 0;  // By the system's clock.
  };

  absl::StatusOr<uid_t> TenantUid(const std::string& directory);
  void ReadRecord();  // From the cache directories.
  bool RecordChanged() const;
  void NoteRecord();
  void MakeRoom(const std::string& kind);
  uid_t FreeUid() const;

  bool own_uids_ = false;  // One for each identity.
  std::optional<os::UserIdentity> service_;
  std::string cache_root_;
  // If that is empty: for containers and listeners' tenants, which must not share a user's own.
  std::string domain_root_;
  bool read_record_ = false;              // Once.
  std::map<std::string, Known> tenants_;  // By cache directory.
  uid_t highest_ = kFirstTenantUid;       // Of all that were given out; the first is the services'.
  // When the record was changed last, and how many directories it has, as far as we know.
  std::pair<int64_t, uint64_t> record_ = {-1, 0};
};

}  // namespace sluice::broker
