// SPDX-License-Identifier: Apache-2.0
#include "broker/resources/registry.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "broker/base/check.h"
#include "proto/status_macros.h"

namespace sluice::broker {
namespace {

absl::Status OverLimit(const std::string& whose, const char* what, uint64_t limit,
                       const char* key) {
  return absl::ResourceExhaustedError(
      absl::StrCat(whose, " would pass the limit of ", limit, " ", what, " (", key, ")"));
}

// The bytes of a resource that count against its user's quota.
uint64_t CountedBytes(const ResourceShape& shape, const ResourceMemory& memory) {
  return memory.brought_bytes != 0 ? memory.brought_bytes : shape.size_bytes;
}

}  // namespace

const char* BackingName(wire::ResourceBacking backing) {
  switch (backing) {
    case wire::ResourceBacking::kAny:
      break;
    case wire::ResourceBacking::kMemfd:
      return "memfd";
    case wire::ResourceBacking::kDmaBuf:
      return "dmabuf";
    case wire::ResourceBacking::kVulkan:
      return "vulkan";
    case wire::ResourceBacking::kGralloc:
      return "gralloc";
    case wire::ResourceBacking::kImported:
      return "imported";
    case wire::ResourceBacking::kD3d11:
      return "d3d11";
  }
  return "unknown";
}

// --- quotas -------------------------------------------------------------------------------------

absl::Status ResourceRegistry::Fits(const std::string& identity, const Usage& own,
                                    uint64_t size_bytes, const ResourceQuota& own_quota) const {
  const uint64_t most = own_quota.count != 0 ? own_quota.count : limits_.max_resources_per_user;
  const uint64_t most_bytes = own_quota.bytes != 0 ? own_quota.bytes : limits_.max_bytes_per_user;
  const auto over = [&](uint64_t used, uint64_t more, uint64_t limit) {
    const uint64_t bound = limit != 0 ? limit : std::numeric_limits<uint64_t>::max();
    return used > bound || more > bound - used;
  };
  if (over(own.count, 1, most)) {
    return OverLimit(
        identity, "resources", most,
        own_quota.count != 0 ? "max_resources of its listener" : "max_resources_per_user");
  }
  if (over(own.bytes, size_bytes, most_bytes)) {
    return OverLimit(
        identity, "bytes", most_bytes,
        own_quota.bytes != 0 ? "max_resource_bytes of its listener" : "max_bytes_per_user");
  }
  if (over(total_.count, 1, limits_.max_resources))
    return OverLimit("the daemon", "resources", limits_.max_resources, "max_resources");
  if (over(total_.bytes, size_bytes, limits_.max_bytes))
    return OverLimit("the daemon", "bytes", limits_.max_bytes, "max_bytes");
  return absl::OkStatus();
}

absl::Status ResourceRegistry::Reserve(const std::string& identity, uint64_t size_bytes,
                                       const ResourceQuota& own_quota) {
  thread_.Assert();
  absl::Status fits = Fits(identity, usage_of_[identity], size_bytes, own_quota);
  if (!fits.ok() && FreeSome(identity)) {
    fits = Fits(identity, usage_of_[identity], size_bytes, own_quota);
  }
  Usage& own = usage_of_[identity];
  const size_t left_open = own.left_open.size();
  if (!fits.ok() && own.count == 0) usage_of_.erase(identity);
  if (!fits.ok() && left_open != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat(fits.message(), "; ", left_open,
                     " that were destroyed count until nobody has them open or mapped any more"));
  }
  if (!fits.ok()) return fits;
  ++own.count;
  own.bytes += size_bytes;
  ++total_.count;
  total_.bytes += size_bytes;
  return absl::OkStatus();
}

void ResourceRegistry::CancelReservation(const std::string& identity, uint64_t size_bytes) {
  thread_.Assert();
  Subtract(identity, size_bytes);
}

void ResourceRegistry::Subtract(const std::string& identity, uint64_t size_bytes) {
  const auto own = usage_of_.find(identity);
  SLUICE_CHECK(own != usage_of_.end() && own->second.bytes >= size_bytes);
  own->second.bytes -= size_bytes;
  if (--own->second.count == 0) usage_of_.erase(own);
  --total_.count;
  total_.bytes -= size_bytes;
}

// --- creating and finding -----------------------------------------------------------------------

absl::StatusOr<CreatedResource> ResourceRegistry::Create(
    uint64_t connection, const std::string& identity, ResourceShape shape,
    wire::ResourceBacking backing, ResourceOptions options, ResourceMemory memory) {
  thread_.Assert();
  absl::StatusOr<uint64_t> id = MakeRandomId();
  while (id.ok() && resources_.contains(*id)) id = MakeRandomId();
  absl::StatusOr<Capability> read = id.ok() ? MakeCapability(*id) : id.status();
  absl::StatusOr<Capability> write = id.ok() ? MakeCapability(*id) : id.status();
  if (!read.ok() || !write.ok()) {
    Subtract(identity, CountedBytes(shape, memory));
    return read.ok() ? write.status() : read.status();
  }
  Resource resource;
  resource.identity = identity;
  resource.read = *read;
  resource.write = *write;
  resource.shape = std::move(shape);
  resource.backing = backing;
  resource.options = std::move(options);
  resource.options.linger_ms =
      std::min(resource.options.linger_ms, static_cast<int64_t>(limits_.max_linger_ms));
  resource.memory = std::move(memory);
  resource.users.insert(connection);
  clients_[connection].resources.insert(*id);
  resources_[*id] = std::move(resource);
  return CreatedResource{*id, *read, *write};
}

absl::StatusOr<uint64_t> ResourceRegistry::Find(const std::string& capability_untrusted,
                                                ResourceAccess access) {
  const std::optional<Capability> shown = Capability::Decode(capability_untrusted);
  if (!shown.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("a capability has ", Capability::kBytes,
                                                   " bytes, this one has ",
                                                   capability_untrusted.size()));
  }
  const auto found = resources_.find(shown->resource_id);
  const bool known = found != resources_.end() && !found->second.destroyed;
  const Capability none;  // An unknown id is compared too: the same work, the same answer.
  const bool writes = SecretsEqual(*shown, known ? found->second.write : none);
  const bool reads = SecretsEqual(*shown, known ? found->second.read : none);
  if (!known || (!writes && !reads)) {
    return absl::PermissionDeniedError("this capability opens nothing (or what it opened is gone)");
  }
  if (access == ResourceAccess::kWrite && !writes) {
    return absl::PermissionDeniedError("this capability is for reading only");
  }
  return found->first;
}

absl::StatusOr<ResourceView> ResourceRegistry::Open(uint64_t connection,
                                                    const std::string& capability_untrusted,
                                                    ResourceAccess access) {
  thread_.Assert();
  ASSIGN_OR_RETURN(const uint64_t id, Find(capability_untrusted, access));
  Resource& resource = resources_[id];
  resource.users.insert(connection);
  clients_[connection].resources.insert(id);
  if (resource.linger_until_ms != 0) {
    lingering_.erase({std::exchange(resource.linger_until_ms, 0), id});
  }
  return ResourceView{id, &resource.shape, resource.backing, &resource.options, &resource.memory};
}

ResourceStateView ResourceRegistry::StateOf(uint64_t resource_id) const {
  thread_.Assert();
  const auto found = resources_.find(resource_id);
  return found == resources_.end() ? ResourceStateView() : StateOf(found->second);
}

ResourceStateView ResourceRegistry::StateOf(const Resource& resource) const {
  thread_.Assert();
  ResourceStateView state;
  state.generation = resource.turns.generation();
  state.indeterminate = resource.turns.indeterminate();
  state.destroyed = resource.destroyed;
  state.readers = static_cast<uint32_t>(resource.turns.reader_count());
  state.writer = resource.turns.has_writer();
  state.waiting = static_cast<uint32_t>(resource.turns.waiting_count());
  return state;
}

// --- taking turns -------------------------------------------------------------------------------

uint64_t ResourceRegistry::FindTicket(uint64_t connection, uint64_t hold_id_untrusted) const {
  const auto client = clients_.find(connection);
  if (client == clients_.end()) return 0;
  const auto ticket = client->second.tickets.find(hold_id_untrusted);
  return ticket == client->second.tickets.end() ? 0 : ticket->second;
}

absl::Status ResourceRegistry::MayAcquire(uint64_t connection, uint64_t hold_id_untrusted) const {
  if (hold_id_untrusted == 0) return absl::InvalidArgumentError("a hold's id is not 0");
  if (FindTicket(connection, hold_id_untrusted) != 0) {
    return absl::AlreadyExistsError("this connection holds something, or waits, under that id");
  }
  const auto client = clients_.find(connection);
  if (client == clients_.end() ||
      client->second.tickets.size() < limits_.max_acquires_per_connection) {
    return absl::OkStatus();
  }
  return OverLimit("this connection", "acquires, waiting or held",
                   limits_.max_acquires_per_connection, "max_acquires_per_connection");
}

void ResourceRegistry::Acquire(uint64_t connection, uint64_t hold_id_untrusted,
                               const std::string& capability_untrusted, ResourceAccess access,
                               int64_t now_ms, uint64_t timeout_ms, AcquireDone done) {
  thread_.Assert();
  const absl::Status allowed = MayAcquire(connection, hold_id_untrusted);
  const absl::StatusOr<ResourceView> view = allowed.ok()
                                                ? Open(connection, capability_untrusted, access)
                                                : absl::StatusOr<ResourceView>(allowed);
  if (!view.ok()) return done(view.status());
  Resource& resource = resources_[view->id];
  const uint64_t ticket = next_id_++;
  const int64_t deadline_ms =
      now_ms + static_cast<int64_t>(std::min(timeout_ms, limits_.max_wait_ms));
  tickets_[ticket] = {view->id, connection, hold_id_untrusted, deadline_ms, std::move(done)};
  deadlines_.insert({deadline_ms, ticket});
  resource.tickets.insert(ticket);
  clients_[connection].tickets[hold_id_untrusted] = ticket;
  Calls calls;
  resource.turns.Request(ticket, access);
  HandOut(view->id, &calls);
  if (timeout_ms == 0 && tickets_[ticket].done) {
    EndTicket(ticket, ResourceTurns::Contents::kUntouched,
              absl::DeadlineExceededError("it is held by another"), &calls);
  }
  Run(calls);
}

void ResourceRegistry::HandOut(uint64_t resource_id, Calls* calls) {
  Resource& resource = resources_[resource_id];
  for (const uint64_t id : resource.turns.TakeGranted()) {
    Ticket& ticket = tickets_[id];
    deadlines_.erase({ticket.deadline_ms, id});
    const ResourceGrant grant = {resource.turns.indeterminate(), resource.turns.generation()};
    calls->answers.push_back([done = std::exchange(ticket.done, nullptr), grant] { done(grant); });
  }
  // EndWatch tells of its end, last of all.
  if (!resource.destroyed) calls->changed.insert(resource_id);
}

void ResourceRegistry::EndTicket(uint64_t id, ResourceTurns::Contents contents, absl::Status told,
                                 Calls* calls) {
  const auto found = tickets_.find(id);
  const Ticket ticket = std::move(found->second);
  tickets_.erase(found);
  deadlines_.erase({ticket.deadline_ms, id});
  if (ticket.done) calls->answers.push_back([done = ticket.done, told] { done(told); });
  clients_[ticket.connection].tickets.erase(ticket.hold_id);
  DropClientIfIdle(ticket.connection);
  Resource& resource = resources_[ticket.resource_id];
  resource.tickets.erase(id);
  resource.turns.End(id, contents);
  HandOut(ticket.resource_id, calls);
  ForgetIfUnheld(ticket.resource_id);
}

void ResourceRegistry::Cancel(uint64_t connection, uint64_t hold_id) {
  thread_.Assert();
  const uint64_t ticket = FindTicket(connection, hold_id);
  if (ticket == 0 || !tickets_[ticket].done) return;
  Calls calls;
  EndTicket(ticket, ResourceTurns::Contents::kUntouched, absl::CancelledError("cancelled"), &calls);
  Run(calls);
}

absl::StatusOr<uint64_t> ResourceRegistry::Release(uint64_t connection, uint64_t hold_id_untrusted,
                                                   ResourceTurns::Contents contents) {
  thread_.Assert();
  const uint64_t ticket = FindTicket(connection, hold_id_untrusted);
  if (ticket == 0 || tickets_[ticket].done) {
    return absl::NotFoundError("this connection holds nothing under that id");
  }
  const uint64_t resource_id = tickets_[ticket].resource_id;
  ResourceTurns& turns = resources_[resource_id].turns;
  const bool counts = turns.has_writer() && contents != ResourceTurns::Contents::kUntouched;
  const uint64_t generation = turns.generation() + (counts ? 1 : 0);
  Calls calls;
  EndTicket(ticket, contents, absl::OkStatus(), &calls);
  Run(calls);
  return generation;
}

// --- the end of things --------------------------------------------------------------------------

absl::Status ResourceRegistry::Destroy(const std::string& capability_untrusted) {
  thread_.Assert();
  ASSIGN_OR_RETURN(const uint64_t id, Find(capability_untrusted, ResourceAccess::kWrite));
  Calls calls;
  DestroyResource(id, &calls);
  Run(calls);
  return absl::OkStatus();
}

void ResourceRegistry::DestroyResource(uint64_t id, Calls* calls) {
  Resource& resource = resources_[id];
  resource.destroyed = true;
  if (resource.linger_until_ms != 0) {
    lingering_.erase({std::exchange(resource.linger_until_ms, 0), id});
  }
  for (const uint64_t connection : std::exchange(resource.users, {})) {
    clients_[connection].resources.erase(id);
    DropClientIfIdle(connection);
  }
  // From the back: ending the first would let the next hold for a moment.
  std::vector<uint64_t> waiting;
  for (const uint64_t ticket : resource.tickets) {
    if (tickets_[ticket].done) waiting.push_back(ticket);
  }
  std::reverse(waiting.begin(), waiting.end());
  for (const uint64_t ticket : waiting) {
    EndTicket(ticket, ResourceTurns::Contents::kUntouched,
              absl::AbortedError("the resource was destroyed"), calls);
  }
  // Ending the last ticket may have forgotten the resource, but only an unheld, unwatched one.
  const auto left = resources_.find(id);
  if (left == resources_.end()) return;
  for (const uint64_t watch : std::set<uint64_t>(left->second.watches)) EndWatch(watch, calls);
  ForgetIfUnheld(id);
}

void ResourceRegistry::ForgetIfUnheld(uint64_t id) {
  const auto found = resources_.find(id);
  if (found == resources_.end()) return;
  const Resource& resource = found->second;
  if (!resource.destroyed || !resource.tickets.empty() || !resource.watches.empty()) return;
  if (ForgetIfClosed(id)) return;
  Resource& left = found->second;
  left.look_after_ms = kFirstLookMs;
  left_open_.insert({left.look_at_ms, id});  // AdvanceTo knows the time.
  usage_of_[left.identity].left_open.insert(id);
}

// --- destroyed memory that others have open -----------------------------------------------------

bool ResourceRegistry::ForgetIfClosed(uint64_t id) {
  const auto found = resources_.find(id);
  Resource& resource = found->second;
  // Imported memory is its bringer's own, whether the daemon has it or not.
  const bool counts = resource.memory.lent && resource.memory.brought_bytes == 0;
  if (counts && is_open_elsewhere_ && is_open_elsewhere_(&resource.memory)) return false;
  if (resource.look_after_ms != 0) {
    left_open_.erase({resource.look_at_ms, id});
    usage_of_[resource.identity].left_open.erase(id);
  }
  Subtract(resource.identity, CountedBytes(resource.shape, resource.memory));
  resources_.erase(found);
  return true;
}

void ResourceRegistry::LookAgain(uint64_t id, int64_t now_ms) {
  if (ForgetIfClosed(id)) return;
  Resource& resource = resources_[id];
  left_open_.erase({resource.look_at_ms, id});
  resource.look_at_ms = now_ms + resource.look_after_ms;
  resource.look_after_ms = std::min(2 * resource.look_after_ms, kMostLookMs);
  left_open_.insert({resource.look_at_ms, id});
}

bool ResourceRegistry::FreeSome(const std::string& identity) {
  const auto own = usage_of_.find(identity);
  if (own == usage_of_.end()) return false;
  bool freed = false;
  int looks = 0;
  for (const uint64_t id : std::set<uint64_t>(own->second.left_open)) {
    if (looks++ == kEndsAtOnce) break;
    if (ForgetIfClosed(id)) freed = true;
  }
  return freed;
}

void ResourceRegistry::ConnectionEnded(uint64_t connection, int64_t now_ms) {
  thread_.Assert();
  const auto found = clients_.find(connection);
  if (found == clients_.end()) return;
  const Client client = found->second;  // A copy: each step below changes the original.
  Calls calls;
  const absl::Status told = absl::UnavailableError("the connection has ended");
  // Waits first, so that no hold of the dead is granted on the way.
  for (const auto& [hold_id, ticket] : client.tickets) {
    if (tickets_[ticket].done) EndTicket(ticket, ResourceTurns::Contents::kUntouched, told, &calls);
  }
  for (const auto& [hold_id, ticket] : client.tickets) {
    if (!tickets_.contains(ticket)) continue;
    EndTicket(ticket, ResourceTurns::Contents::kIndeterminate, told, &calls);
  }
  for (const uint64_t watch : client.watches) EndWatch(watch, &calls);
  for (const uint64_t id : client.resources) {
    Resource& resource = resources_[id];
    resource.users.erase(connection);
    if (!resource.users.empty()) continue;
    if (resource.options.linger_ms == 0) {
      DestroyResource(id, &calls);
    } else {
      resource.linger_until_ms = now_ms + resource.options.linger_ms;
      lingering_.insert({resource.linger_until_ms, id});
    }
  }
  clients_.erase(connection);
  Run(calls);
}

void ResourceRegistry::DropClientIfIdle(uint64_t connection) {
  const auto found = clients_.find(connection);
  if (found == clients_.end()) return;
  const Client& client = found->second;
  if (client.resources.empty() && client.tickets.empty() && client.watches.empty()) {
    clients_.erase(found);
  }
}

// --- watches, time, lists -----------------------------------------------------------------------

absl::StatusOr<uint64_t> ResourceRegistry::Watch(uint64_t connection,
                                                 const std::string& capability_untrusted,
                                                 WatchCallback callback) {
  thread_.Assert();
  const auto client = clients_.find(connection);
  if (client != clients_.end() &&
      client->second.watches.size() >= limits_.max_watches_per_connection) {
    return OverLimit("this connection", "watches", limits_.max_watches_per_connection,
                     "max_watches_per_connection");
  }
  ASSIGN_OR_RETURN(const ResourceView view,
                   Open(connection, capability_untrusted, ResourceAccess::kRead));
  const uint64_t id = next_id_++;
  Resource& resource = resources_[view.id];
  resource.watches.insert(id);
  clients_[connection].watches.insert(id);
  callback(resource.state, false);
  watches_[id] = {view.id, connection, resource.changes, std::move(callback)};
  return id;
}

void ResourceRegistry::Unwatch(uint64_t watch_id) {
  thread_.Assert();
  Calls unheard;  // The watcher itself asked.
  EndWatch(watch_id, &unheard);
}

void ResourceRegistry::EndWatch(uint64_t id, Calls* calls) {
  const auto found = watches_.find(id);
  if (found == watches_.end()) return;
  const Watcher watcher = std::move(found->second);
  watches_.erase(found);
  Resource& resource = resources_[watcher.resource_id];
  resource.watches.erase(id);
  calls->answers.push_back(
      [callback = watcher.callback, state = StateOf(resource)] { callback(state, true); });
  clients_[watcher.connection].watches.erase(id);
  DropClientIfIdle(watcher.connection);
  ForgetIfUnheld(watcher.resource_id);
}

std::optional<int64_t> ResourceRegistry::NextDueMs() const {
  thread_.Assert();
  std::optional<int64_t> next;
  if (!deadlines_.empty()) next = deadlines_.begin()->first;
  if (!lingering_.empty()) {
    next = std::min(next.value_or(lingering_.begin()->first), lingering_.begin()->first);
  }
  if (!left_open_.empty()) {
    next = std::min(next.value_or(left_open_.begin()->first), left_open_.begin()->first);
  }
  return next;
}

void ResourceRegistry::AdvanceTo(int64_t now_ms) {
  thread_.Assert();
  Calls calls;
  int ends = 0;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now_ms && ends++ < kEndsAtOnce) {
    EndTicket(deadlines_.begin()->second, ResourceTurns::Contents::kUntouched,
              absl::DeadlineExceededError("its turn did not come in time"), &calls);
  }
  while (!lingering_.empty() && lingering_.begin()->first <= now_ms && ends++ < kEndsAtOnce) {
    DestroyResource(lingering_.begin()->second, &calls);
  }
  while (!left_open_.empty() && left_open_.begin()->first <= now_ms && ends++ < kEndsAtOnce) {
    LookAgain(left_open_.begin()->second, now_ms);
  }
  Run(calls);
}

void ResourceRegistry::Run(const Calls& calls) {
  for (const uint64_t id : calls.changed) NoteChange(id);
  for (const std::function<void()>& answer : calls.answers) answer();
  if (untold_.empty()) return;
  if (on_untold_) return on_untold_();
  TellWatches(std::numeric_limits<size_t>::max());
}

void ResourceRegistry::NoteChange(uint64_t resource_id) {
  const auto found = resources_.find(resource_id);
  if (found == resources_.end()) return;
  Resource& resource = found->second;
  const ResourceStateView state = StateOf(resource);
  if (state == std::exchange(resource.state, state)) return;  // After a failed acquire, say.
  ++resource.changes;
  if (resource.watches.empty()) return;
  if (resource.untold == 0) untold_.push_back(resource_id);
  resource.untold = resource.watches.size();
}

// Watches that come or go meanwhile only change how many are looked at in vain.
size_t ResourceRegistry::TellWatches(size_t most) {
  thread_.Assert();
  size_t looked_at = 0;
  for (; !untold_.empty() && looked_at < most; ++looked_at) {
    const uint64_t id = untold_.front();
    untold_.pop_front();
    const auto found = resources_.find(id);
    if (found == resources_.end()) continue;
    Resource& resource = found->second;
    if (resource.watches.empty()) resource.untold = 0;
    if (resource.untold == 0) continue;
    auto next = resource.watches.upper_bound(resource.last_told);
    if (next == resource.watches.end()) next = resource.watches.begin();
    resource.last_told = *next;
    if (--resource.untold != 0) untold_.push_back(id);
    Watcher& watcher = watches_[*next];
    if (std::exchange(watcher.told, resource.changes) == resource.changes) continue;
    watcher.callback(resource.state, false);
  }
  return looked_at;
}

uint64_t ResourceRegistry::CountOf(const std::string& identity) const {
  const auto found = usage_of_.find(identity);
  return found == usage_of_.end() ? 0 : found->second.count;
}

uint64_t ResourceRegistry::BytesOf(const std::string& identity) const {
  const auto found = usage_of_.find(identity);
  return found == usage_of_.end() ? 0 : found->second.bytes;
}

std::vector<ResourceInfo> ResourceRegistry::List() const {
  thread_.Assert();
  std::vector<ResourceInfo> list;
  for (const auto& [id, resource] : resources_) {
    ResourceInfo info;
    info.id = id;
    info.identity = resource.identity;
    info.label = resource.options.label;
    info.image = resource.shape.image.has_value();
    info.size_bytes = resource.shape.size_bytes;
    info.backing = resource.backing;
    info.state = StateOf(resource);
    info.users = static_cast<uint32_t>(resource.users.size());
    info.watches = static_cast<uint32_t>(resource.watches.size());
    info.left_open = resource.look_after_ms != 0;
    list.push_back(std::move(info));
  }
  return list;
}

}  // namespace sluice::broker
