// SPDX-License-Identifier: Apache-2.0
//
// Serves the clients of daemon-owned resources: their connections (a stream for gRPC and a handle
// channel), making and importing memory, sending handles. The registry decides who may; this does
// it.
//
//   Open --> [connected] --either descriptor's other end closed, or its broker connection's, or
//                |          a malformed message on the handle channel, or Stop--> ended
//                +-- calls, by the connection that they came on
//
// Owner: the Broker. Loop thread only: the gRPC service posts to it. The kernel gives the identity
// of the broker connection. Everything in a call or on a handle channel comes from a client and is
// checked here or in the registry.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/children/allocator_link.h"
#include "broker/config/config.h"
#include "broker/config/policy.h"
#include "broker/event_loop.h"
#include "broker/os/lent_memory.h"
#include "broker/os/scoped_handle.h"
#include "broker/os/thread_checker.h"
#include "broker/os/types.h"
#include "broker/quotas.h"
#include "broker/resources/registry.h"
#include "broker/resources/streams.h"
#include "broker/slots.h"
#include "broker/tenants/tenant.h"

namespace sluice::broker {

// The client that asks for a connection.
struct ResourceClient {
  uint64_t owner = 0;   // The broker connection; EndOwnedBy ends what it has.
  uid_t uid = 0;        // From the kernel.
  std::string account;  // Limits are counted for it.
  ResourceQuota quota;
  std::string process_name;
};

// For messages to a person.
inline constexpr char kResourcesAreOff[] =
    "this daemon shares no resources; enabled = true in [resources] of its configuration turns "
    "them on";

struct CreateParameters {
  ResourceShape shape;  // As the client says it.
  wire::ResourceBacking backing = wire::ResourceBacking::kAny;
  ResourceOptions options;
};

class ResourceHub {
 public:
  using CreateDone = std::function<void(absl::StatusOr<CreatedResource>)>;

  explicit ResourceHub(EventLoop* loop);
  ~ResourceHub() { Stop(); }

  // Takes connections to the gRPC server; until Stop. Null: there is no server.
  void SetStreams(ResourceStreams* streams) { streams_ = streams; }
  void Configure(const ResourcesConfig& config, std::optional<os::UserIdentity> allocator_user,
                 std::vector<std::string> allocator_confinement_arguments);
  // From now on there are no new connections.
  void StartDraining() { draining_ = true; }

  // Opens a connection, or refuses, and answers on `socket`. An error means that the peer cannot be
  // reached.
  absl::Status SendConnection(int socket, const ResourceClient& client);
  void EndOwnedBy(uint64_t owner);
  void Stop();  // Ends every connection and the allocator.
  bool IsAllocator(pid_t pid) const { return allocator_.Is(pid); }

  // True for a connection that has not ended.
  bool IsConnected(uint64_t connection) const { return connections_.contains(connection); }

  // The clients' calls; the registry's functions of these names say more.
  void Create(uint64_t connection, CreateParameters parameters, CreateDone done);
  // `done` is called once, possibly before this returns: the offer may be on its way still.
  void Import(uint64_t connection, uint64_t token, CreateParameters parameters, CreateDone done);
  // How many descriptors went out on the handle channel.
  absl::StatusOr<uint32_t> Export(uint64_t connection, const std::string& capability,
                                  ResourceAccess access, uint64_t token);
  void Acquire(uint64_t connection, uint64_t hold_id, const std::string& capability,
               ResourceAccess access, uint64_t timeout_ms, ResourceRegistry::AcquireDone done);
  void Cancel(uint64_t connection, uint64_t hold_id);
  absl::StatusOr<uint64_t> Release(uint64_t connection, uint64_t hold_id,
                                   ResourceTurns::Contents contents);
  absl::Status Destroy(const std::string& capability);
  absl::StatusOr<ResourceView> Describe(uint64_t connection, const std::string& capability);
  absl::StatusOr<uint64_t> Watch(uint64_t connection, const std::string& capability,
                                 ResourceRegistry::WatchCallback callback);
  void Unwatch(uint64_t watch_id);
  void SetOnUntold(std::function<void()> on_untold) { registry_.SetOnUntold(std::move(on_untold)); }
  size_t TellWatches(size_t most) { return registry_.TellWatches(most); }

  void AddQuotas(const Account& account, std::vector<QuotaUse>* quotas) const;

  const ResourceRegistry& registry() const { return registry_; }
  size_t connection_count() const { return connections_.size(); }

 private:
  // An Import whose offer has not been seen yet; Windows only (kDeliveryMs).
  struct AwaitedOffer {
    CreateParameters parameters;
    CreateDone done;
    EventLoop::TimerId timer = 0;
  };
  struct Connection {
    uint64_t id = 0;
    ResourceClient client;
    os::UniqueFd transport;  // To hang up, and to notice that the other side does.
    os::UniqueFd channel;
    std::shared_ptr<void> slot;
    EventLoop::WatchId transport_watch = 0;
    EventLoop::WatchId channel_watch = 0;
    // By token, for Import. A descriptor that cannot be imported is not kept: a socket of the
    // client's own would keep this connection from ending.
    std::map<uint64_t, absl::StatusOr<os::UniqueFd>> offers;
    std::map<uint64_t, AwaitedOffer> awaited;
  };

  std::optional<Refusal> MayConnect(const ResourceClient& client) const;
  absl::StatusOr<std::pair<os::UniqueFd, os::UniqueFd>> Connect(const ResourceClient& client);
  void ReadOffers(uint64_t id);
  void TakeOffer(uint64_t id, uint64_t token, absl::StatusOr<os::UniqueFd> fd);
  absl::StatusOr<CreatedResource> FinishImport(Connection* connection,
                                               absl::StatusOr<os::UniqueFd> fd,
                                               CreateParameters parameters);
  void GiveUpOffer(uint64_t id, uint64_t token, const absl::Status& told);
  // Closes `brought`, too: the descriptors that came with the violation.
  void End(uint64_t id, const std::string& violation, std::vector<os::UniqueFd> brought = {});
  void FinishCreate(uint64_t connection, const std::string& identity, CreateParameters parameters,
                    absl::StatusOr<AllocatedMemory> memory, const CreateDone& done);
  absl::StatusOr<CreatedResource> Keep(uint64_t connection, const std::string& identity,
                                       CreateParameters parameters, ResourceMemory memory);
  void Rearm();

  os::ThreadChecker thread_;
  EventLoop* const loop_;
  ResourceStreams* streams_ = nullptr;
  ResourcesConfig config_;
  AllocatorLink allocator_;
  ResourceRegistry registry_;
  bool draining_ = false;
  uint64_t next_id_ = 1;
  std::map<uint64_t, std::unique_ptr<Connection>> connections_;
  Slots<std::string> slots_;  // By account, of connections until they are quite closed.
  EventLoop::TimerId timer_ = 0;
  int64_t timer_due_ms_ = 0;
  RateLimiter log_limiter_{20, 2};
};

}  // namespace sluice::broker
