// SPDX-License-Identifier: Apache-2.0
//
// The resources that the daemon owns: their shapes, the capabilities that open them, whose turn it
// is, who keeps them alive, the quotas that they count against. Pure bookkeeping: it uses no
// descriptor and no socket, and callers give the time.
//
//   Create --> [live] --Destroy, or its last user gone and linger over--> [destroyed] --> gone
//                                  capabilities stop, waits end; holds stay and
//                                  count until released, lent memory until others
//                                  have closed it
//
// A *user* of a resource is a connection that has shown one of its capabilities; its creator is one
// from the start. The end of a connection is the end of its waits, watches and holds; a write hold
// that ends so leaves the contents indeterminate.
//
// A change's cost does not depend on the number of watches. They are told afterwards, each one once
// and the newest state, as many at a time as the owner likes.
//
// Owner: ResourceHub. Loop thread only. Capabilities, sizes and ids come from clients and are
// checked here; shapes have been through CompleteShape. Callbacks are called on the loop thread,
// after the registry's own state is whole again; they must not call back into it, but for
// TellWatches.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/config/config.h"
#include "broker/os/close_elsewhere.h"
#include "broker/os/lent_memory.h"
#include "broker/os/scoped_handle.h"
#include "broker/os/thread_checker.h"
#include "broker/resources/capability.h"
#include "broker/resources/shape.h"
#include "broker/resources/turns.h"
#include "proto/resource_messages.h"

namespace sluice::broker {

// "memfd", "dmabuf", ...
const char* BackingName(wire::ResourceBacking backing);

// The native handle, which an export duplicates.
struct ResourceMemory {
  os::LentKind kind = os::LentKind::kMemfd;
  os::StrangersFds fds;
  std::vector<int32_t> ints;      // Of a gralloc handle, or Vulkan's (resource_messages.h).
  uint64_t allocation_bytes = 0;  // Of an opaque one: the size that importers name, and the device.
  std::array<uint8_t, 16> device_uuid = {};
  // Counts against the quota in place of the shape's size, if it is not 0: imported memory stays
  // whole as long as its descriptor does.
  uint64_t brought_bytes = 0;
  bool lent = false;                            // Somebody was given a descriptor of it.
  std::optional<os::RemainingHolders> holders;  // Has `fds` once lent memory is destroyed.
};

struct ResourceOptions {
  std::string label;
  bool trust_readers = false;
  int64_t linger_ms = 0;
};

// A resource as its users see it. Pointers stay good until the next call that may end it.
struct ResourceView {
  uint64_t id = 0;
  const ResourceShape* shape = nullptr;
  wire::ResourceBacking backing = wire::ResourceBacking::kMemfd;
  const ResourceOptions* options = nullptr;
  ResourceMemory* memory = nullptr;
};

struct ResourceStateView {
  uint64_t generation = 0;
  bool indeterminate = false;
  bool destroyed = false;
  uint32_t readers = 0;
  bool writer = false;
  uint32_t waiting = 0;

  bool operator==(const ResourceStateView&) const = default;
};

struct ResourceGrant {
  bool indeterminate = false;
  uint64_t generation = 0;
};

struct CreatedResource {
  uint64_t id = 0;
  Capability read;
  Capability write;
};

// For operators.
struct ResourceInfo {
  uint64_t id = 0;
  std::string identity;
  std::string label;
  bool image = false;
  uint64_t size_bytes = 0;
  wire::ResourceBacking backing = wire::ResourceBacking::kMemfd;
  ResourceStateView state;
  uint32_t users = 0;
  uint32_t watches = 0;
  bool left_open = false;  // Destroyed and not held, but open elsewhere still: it counts.
};

// An operator's own quota for one identity; 0: everybody's.
struct ResourceQuota {
  uint64_t count = 0;
  uint64_t bytes = 0;
};

class ResourceRegistry {
 public:
  using AcquireDone = std::function<void(absl::StatusOr<ResourceGrant>)>;
  // The second argument is true when the watch has ended, by the resource's or the connection's
  // end.
  using WatchCallback = std::function<void(const ResourceStateView&, bool ended)>;

  explicit ResourceRegistry(const ResourcesConfig& limits) : limits_(limits) {}

  // Asked of destroyed memory that was lent, at growing intervals, until the answer is false;
  // without `is_open` such memory is forgotten at once.
  using IsOpenElsewhere = std::function<bool(ResourceMemory*)>;
  void SetIsOpenElsewhere(IsOpenElsewhere is_open) { is_open_elsewhere_ = std::move(is_open); }

  // For requests from now on.
  void Configure(const ResourcesConfig& limits) { limits_ = limits; }

  // Reserves one more resource of `size_bytes` in the quota of `identity`, its own or everybody's,
  // while its memory is made: until CancelReservation or Create.
  absl::Status Reserve(const std::string& identity, uint64_t size_bytes,
                       const ResourceQuota& own_quota = {});
  void CancelReservation(const std::string& identity, uint64_t size_bytes);

  // Takes over a reservation of shape.size_bytes, or memory.brought_bytes if that is not 0, also
  // when it fails.
  absl::StatusOr<CreatedResource> Create(uint64_t connection, const std::string& identity,
                                         ResourceShape shape, wire::ResourceBacking backing,
                                         ResourceOptions options, ResourceMemory memory);

  // Returns the resource that the capability opens, if it is good for `access`; makes the
  // connection one of its users.
  absl::StatusOr<ResourceView> Open(uint64_t connection, const std::string& capability_untrusted,
                                    ResourceAccess access);
  ResourceStateView StateOf(uint64_t resource_id) const;

  // Calls `done` once: at once, when the turn comes, at `now_ms + timeout_ms`, when the resource or
  // the connection ends, or after Cancel. `hold_id` is the client's name for the hold from the
  // moment that it waits: so a client can release it that never heard of the grant.
  void Acquire(uint64_t connection, uint64_t hold_id_untrusted,
               const std::string& capability_untrusted, ResourceAccess access, int64_t now_ms,
               uint64_t timeout_ms, AcquireDone done);
  // Ends the wait, unless it has ended.
  void Cancel(uint64_t connection, uint64_t hold_id);
  // Returns the generation afterwards.
  absl::StatusOr<uint64_t> Release(uint64_t connection, uint64_t hold_id_untrusted,
                                   ResourceTurns::Contents contents);

  absl::Status Destroy(const std::string& capability_untrusted);

  // Calls back with the state at once, before it returns, and with the newest one whenever
  // TellWatches comes to it after a change. 0 is never an id.
  absl::StatusOr<uint64_t> Watch(uint64_t connection, const std::string& capability_untrusted,
                                 WatchCallback callback);
  void Unwatch(uint64_t watch_id);
  // Looks at `most` watches at most, one of each changed resource in turn, and tells those that do
  // not know the newest state. Returns how many it looked at: fewer than `most` when all have been
  // told.
  size_t TellWatches(size_t most);
  // `on_untold` is called after a change, when there is something for TellWatches. Without it a
  // change tells all watches at once.
  void SetOnUntold(std::function<void()> on_untold) { on_untold_ = std::move(on_untold); }

  void ConnectionEnded(uint64_t connection, int64_t now_ms);

  // When AdvanceTo has something to do: the next deadline of a wait, the next end of a linger, the
  // next look at memory that others have open.
  std::optional<int64_t> NextDueMs() const;
  // Does what is due by `now_ms`, at most kEndsAtOnce: NextDueMs says whether there is more.
  void AdvanceTo(int64_t now_ms);
  static constexpr int kEndsAtOnce = 64;
  // From one look at memory that others have open to the next.
  static constexpr int64_t kFirstLookMs = 50;
  static constexpr int64_t kMostLookMs = 3'200;

  std::vector<ResourceInfo> List() const;
  // Of an identity, all that counts.
  uint64_t CountOf(const std::string& identity) const;
  uint64_t BytesOf(const std::string& identity) const;
  size_t count() const { return resources_.size(); }
  uint64_t bytes() const { return total_.bytes; }

 private:
  struct Usage {
    uint64_t count = 0;
    uint64_t bytes = 0;
    std::set<uint64_t> left_open;  // Resources.
  };
  struct Ticket {
    uint64_t resource_id = 0;
    uint64_t connection = 0;
    uint64_t hold_id = 0;
    int64_t deadline_ms = 0;
    AcquireDone done;  // Empty once it holds.
  };
  struct Watcher {
    uint64_t resource_id = 0;
    uint64_t connection = 0;
    uint64_t told = 0;  // The resource's `changes` that it knows of.
    WatchCallback callback;
  };
  struct Resource {
    std::string identity;
    Capability read;
    Capability write;
    ResourceShape shape;
    wire::ResourceBacking backing = wire::ResourceBacking::kMemfd;
    ResourceOptions options;
    ResourceMemory memory;
    ResourceTurns turns;
    std::set<uint64_t> users;
    std::set<uint64_t> tickets;
    std::set<uint64_t> watches;
    ResourceStateView state;  // After the last of `changes`.
    uint64_t changes = 0;
    size_t untold = 0;            // Watches to look at yet; not 0 as long as it is in untold_.
    uint64_t last_told = 0;       // The watch that was looked at last.
    int64_t linger_until_ms = 0;  // 0: it has users.
    bool destroyed = false;
    int64_t look_at_ms = 0;     // If it is in left_open_.
    int64_t look_after_ms = 0;  // 0: it is not.
  };
  struct Client {  // A connection that has something here.
    std::set<uint64_t> resources;
    std::map<uint64_t, uint64_t> tickets;  // By hold id.
    std::set<uint64_t> watches;
  };
  struct Calls {  // To make when the state is whole again.
    std::vector<std::function<void()>> answers;
    std::set<uint64_t> changed;  // Resources, whose watches are to be told.
  };

  absl::Status Fits(const std::string& identity, const Usage& own, uint64_t size_bytes,
                    const ResourceQuota& own_quota) const;
  // Looks at some of what the identity has destroyed; true if any of it is free now.
  bool FreeSome(const std::string& identity);
  // Forgets it if nobody has it open. True if so.
  bool ForgetIfClosed(uint64_t id);
  void LookAgain(uint64_t id, int64_t now_ms);
  absl::StatusOr<uint64_t> Find(const std::string& capability_untrusted, ResourceAccess access);
  absl::Status MayAcquire(uint64_t connection, uint64_t hold_id_untrusted) const;
  uint64_t FindTicket(uint64_t connection, uint64_t hold_id_untrusted) const;  // 0: none.
  void EndTicket(uint64_t id, ResourceTurns::Contents contents, absl::Status told, Calls* calls);
  void HandOut(uint64_t resource_id, Calls* calls);  // Grants.
  void NoteChange(uint64_t resource_id);
  void EndWatch(uint64_t id, Calls* calls);
  void DestroyResource(uint64_t id, Calls* calls);
  void ForgetIfUnheld(uint64_t id);
  void DropClientIfIdle(uint64_t connection);
  void Subtract(const std::string& identity, uint64_t size_bytes);
  ResourceStateView StateOf(const Resource& resource) const;
  void Run(const Calls& calls);

  os::ThreadChecker thread_;
  ResourcesConfig limits_;
  Usage total_;
  std::map<std::string, Usage> usage_of_;
  std::map<uint64_t, Resource> resources_;
  std::map<uint64_t, Client> clients_;
  std::map<uint64_t, Ticket> tickets_;
  std::map<uint64_t, Watcher> watches_;
  std::set<std::pair<int64_t, uint64_t>> deadlines_;  // Of waiting tickets.
  std::set<std::pair<int64_t, uint64_t>> lingering_;
  std::set<std::pair<int64_t, uint64_t>> left_open_;  // By the time of the next look.
  IsOpenElsewhere is_open_elsewhere_;
  std::deque<uint64_t> untold_;  // Resources with watches to tell, or gone.
  std::function<void()> on_untold_;
  uint64_t next_id_ = 1;  // Of tickets and watches.
};

}  // namespace sluice::broker
