// SPDX-License-Identifier: Apache-2.0
#include "broker/resources/hub.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/base/log.h"
#include "broker/os/close_elsewhere.h"
#include "broker/os/local_socket.h"
#include "broker/os/peer_identity.h"
#include "proto/resource_messages.h"
#include "proto/status_macros.h"

namespace sluice::broker {
namespace {

constexpr int kResourceMessagesPerWakeUp = 8;
// Bound of a connection's refused offers that are still being closed.
constexpr long kMaxClosing = 16;
constexpr size_t kMaxLabelBytes = 63;
constexpr uint64_t kMaxGrallocPitch =
    std::numeric_limits<decltype(wire::GrallocInts::row_pitch)>::max();
constexpr uint64_t kPageBytes = 4096;  // Memory comes in whole pages.
// Of a handle channel: room for a few handles that nobody has read, no more. In-flight descriptors
// count against the daemon's user.
constexpr int kChannelBufferBytes = 16 * 1024;

os::LentKind KindOf(wire::ResourceBacking backing) {
  switch (backing) {
    case wire::ResourceBacking::kDmaBuf:
      return os::LentKind::kDmaBuf;
    case wire::ResourceBacking::kVulkan:
    case wire::ResourceBacking::kD3d11:
      return os::LentKind::kOpaque;
    default:
      return os::LentKind::kMemfd;
  }
}

// The integers of a gralloc-shaped handle, which go with its descriptor.
std::vector<int32_t> GrallocIntsOf(const ResourceShape& shape) {
  wire::GrallocInts ints = {};
  ints.magic = wire::kGrallocMagic;
  ints.size_low = static_cast<int32_t>(shape.size_bytes & 0xffffffff);
  ints.size_high = static_cast<int32_t>(shape.size_bytes >> 32);
  if (shape.image.has_value()) {
    ints.drm_fourcc = static_cast<int32_t>(shape.image->drm_fourcc);
    ints.width = static_cast<int32_t>(shape.image->width);
    ints.height = static_cast<int32_t>(shape.image->height);
    ints.row_pitch = static_cast<int32_t>(shape.image->planes[0].row_pitch);
  }
  std::vector<int32_t> values(wire::kGrallocIntCount);
  std::memcpy(values.data(), &ints, sizeof(ints));
  return values;
}

// The integers that go with the descriptor of Vulkan's memory.
std::vector<int32_t> VulkanIntsOf(const AllocatedMemory& memory) {
  wire::VulkanInts ints = {};
  ints.magic = wire::kVulkanMagic;
  ints.mappable = memory.map_offset.has_value() ? 1 : 0;
  const uint64_t offset = memory.map_offset.value_or(0);
  ints.offset_low = static_cast<int32_t>(offset & 0xffffffff);
  ints.offset_high = static_cast<int32_t>(offset >> 32);
  std::memcpy(ints.driver_uuid, memory.driver_uuid.data(), sizeof(ints.driver_uuid));
  std::vector<int32_t> values(wire::kVulkanIntCount);
  std::memcpy(values.data(), &ints, sizeof(ints));
  return values;
}

// Returns `fd` if it can be imported. Otherwise closes it, which may take long, elsewhere.
absl::StatusOr<os::UniqueFd> IfImportable(os::UniqueFd fd, const std::shared_ptr<void>& slot) {
  const absl::Status checked = os::CheckLentMemory(fd.get(), 0).status();
  if (checked.ok()) return fd;
  os::CloseElsewhere(std::move(fd), slot);
  return checked;
}

// The allocator is not trusted: memory that is mapped must not be able to shrink.
absl::Status CheckMemory(const AllocatedMemory& memory, os::LentKind wanted, uint64_t size) {
  if (memory.map_offset.has_value()) {
    if (*memory.map_offset > std::numeric_limits<uint64_t>::max() - size)
      return absl::InternalError("the allocator's memory has an impossible offset");
    return os::CheckLentMemory(memory.fds[0].get(), *memory.map_offset + size).status();
  }
  if (wanted == os::LentKind::kOpaque) {
    for (const os::UniqueFd& fd : memory.fds) RETURN_IF_ERROR(os::CheckOpaqueMemory(fd.get()));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const os::LentKind kind, os::CheckLentMemory(memory.fds[0].get(), size));
  return kind == wanted ? absl::OkStatus() : absl::InternalError("memory of another kind");
}

absl::Status CheckParameters(CreateParameters* parameters) {
  RETURN_IF_ERROR(CompleteShape(&parameters->shape));
  const std::optional<ResourceImage>& image = parameters->shape.image;
  if (parameters->backing == wire::ResourceBacking::kGralloc && image.has_value() &&
      image->planes[0].row_pitch > kMaxGrallocPitch) {
    return absl::InvalidArgumentError(
        absl::StrCat("planes[0].row_pitch is ", image->planes[0].row_pitch,
                     ", a gralloc handle has room for ", kMaxGrallocPitch));
  }
  if (parameters->options.label.size() > kMaxLabelBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the label has ",
                                                   parameters->options.label.size(),
                                                   " bytes, allowed are ", kMaxLabelBytes));
  }
  return absl::OkStatus();
}

}  // namespace

ResourceHub::ResourceHub(EventLoop* loop) : loop_(loop), allocator_(loop), registry_({}) {
  registry_.SetIsOpenElsewhere([](ResourceMemory* memory) {
    if (!memory->holders.has_value()) memory->holders.emplace(std::move(memory->fds));
    return memory->holders->Any();
  });
}

void ResourceHub::Configure(const ResourcesConfig& config,
                            std::optional<os::UserIdentity> allocator_user,
                            std::vector<std::string> allocator_confinement_arguments) {
  thread_.Assert();
  config_ = config;
  registry_.Configure(config);
  allocator_.Configure(std::move(allocator_user), std::move(allocator_confinement_arguments));
}

// --- connections
// ----------------------------------------------------------------------------------

std::optional<Refusal> ResourceHub::MayConnect(const ResourceClient& client) const {
  if (!config_.enabled) {
    return Refusal{EOPNOTSUPP, kResourcesAreOff};
  }
  if (draining_) return Refusal{ESHUTDOWN, "the daemon is about to stop"};
  if (slots_.total() >= config_.max_connections) {
    return Refusal{EBUSY, absl::StrCat("the daemon has its limit of ", config_.max_connections,
                                       " resource connections (max_connections in [resources])")};
  }
  for (const auto& [id, connection] : connections_) {
    if (connection->client.owner == client.owner) {
      return Refusal{EALREADY, "this connection to the daemon has its resource connection"};
    }
  }
  if (slots_.CountOf(client.account) < config_.max_connections_per_user) return std::nullopt;
  return Refusal{
      EBUSY, absl::StrCat(client.account, " has the limit of ", config_.max_connections_per_user,
                          " resource connections (max_connections_per_user in "
                          "[resources])")};
}

absl::Status ResourceHub::SendConnection(int socket, const ResourceClient& client) {
  thread_.Assert();
  auto answer = wire::MakeMessage<wire::ResourcesOpened>();
  if (const std::optional<Refusal> refusal = MayConnect(client)) {
    answer.status = refusal->status;
    wire::SetString(answer.message, refusal->message);
    return os::SendMessage(socket, &answer, sizeof(answer));
  }
  const auto ends = Connect(client);
  if (!ends.ok()) {
    Log(LogLevel::kError, "broker", "cannot open a resource connection",
        {{"reason", ends.status().ToString()}});
    answer.status = EIO;
    wire::SetString(answer.message, absl::StrCat("the daemon could not open a connection: ",
                                                 ends.status().message()));
    return os::SendMessage(socket, &answer, sizeof(answer));
  }
  const int fds[] = {ends->first.get(), ends->second.get()};
  return os::SendMessage(socket, &answer, sizeof(answer), fds, 2);
}

absl::StatusOr<std::pair<os::UniqueFd, os::UniqueFd>> ResourceHub::Connect(
    const ResourceClient& client) {
  if (streams_ == nullptr) return absl::UnavailableError("the daemon is stopping");
  ASSIGN_OR_RETURN(auto channel, os::CreateSocketPair(os::FirstEnd::kStays));
  RETURN_IF_ERROR(os::SetNonBlocking(channel.first.get(), true));
  os::LimitUnread(channel.first.get(), kChannelBufferBytes);
  auto connection = std::make_unique<Connection>();
  const uint64_t id = next_id_++;
  connection->id = id;
  connection->client = client;
  connection->channel = std::move(channel.first);
  connection->slot = slots_.Take(client.account);
  ASSIGN_OR_RETURN(ResourceStreams::Ends stream, streams_->Open(id));
  connection->transport = std::move(stream.ours);
  connection->transport_watch =
      loop_->WatchHangUp(connection->transport.get(), [this, id] { End(id, ""); });
  connection->channel_watch =
      loop_->Watch(connection->channel.get(), [this, id] { ReadOffers(id); });
  connections_[id] = std::move(connection);
  return std::make_pair(std::move(stream.client), std::move(channel.second));
}

void ResourceHub::ReadOffers(uint64_t id) {
  for (int i = 0; i < kResourceMessagesPerWakeUp; ++i) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    Connection& connection = *found->second;
    char packet[wire::kMaxBrokerMessageBytes];
    std::vector<os::UniqueFd> fds;
    const absl::StatusOr<size_t> size =
        os::ReceiveMessage(connection.channel.get(), packet, sizeof(packet), &fds, 1);
    if (absl::IsUnavailable(size.status())) return;
    if (!size.ok()) return End(id, std::string(size.status().message()), std::move(fds));
    if (*size == 0) return End(id, "", std::move(fds));
    wire::OfferHandle offer;
    const char* wrong = nullptr;
    if (!wire::ParseMessage(packet, *size, &offer) || fds.size() != 1) {
      wrong = "expected an OfferHandle with one descriptor";
    } else if (connection.offers.size() >= wire::kMaxOffers) {
      wrong = "too many offers without an Import";
    } else if (connection.offers.contains(offer.token)) {
      wrong = "two offers under one token";
    } else if (connection.slot.use_count() > kMaxClosing) {
      wrong = "descriptors that take too long to close";
    }
    if (wrong != nullptr) return End(id, wrong, std::move(fds));
    TakeOffer(id, offer.token, IfImportable(std::move(fds[0]), connection.slot));
  }
}

void ResourceHub::TakeOffer(uint64_t id, uint64_t token, absl::StatusOr<os::UniqueFd> fd) {
  Connection& connection = *connections_[id];
  auto awaited = connection.awaited.extract(token);
  if (awaited.empty()) {
    connection.offers.emplace(token, std::move(fd));
    return;
  }
  loop_->CancelTimer(&awaited.mapped().timer);
  awaited.mapped().done(
      FinishImport(&connection, std::move(fd), std::move(awaited.mapped().parameters)));
}

void ResourceHub::GiveUpOffer(uint64_t id, uint64_t token, const absl::Status& told) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  auto awaited = found->second->awaited.extract(token);
  if (!awaited.empty()) awaited.mapped().done(told);
}

void ResourceHub::End(uint64_t id, const std::string& violation,
                      std::vector<os::UniqueFd> brought) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  const std::unique_ptr<Connection> connection = std::move(found->second);
  connections_.erase(found);
  loop_->Unwatch(&connection->transport_watch);
  loop_->Unwatch(&connection->channel_watch);
  streams_->Close(id);
  os::HangUp(connection->transport.get());  // gRPC's end sees it, and closes.
  for (auto& [token, awaited] : connection->awaited) {
    loop_->CancelTimer(&awaited.timer);
    awaited.done(absl::UnavailableError("the connection has ended"));
  }
  if (!violation.empty() && log_limiter_.Allow(MonotonicMs())) {
    Log(LogLevel::kWarning, "broker", "resource connection closed",
        {{"user", os::UserName(connection->client.uid)},
         {"process", connection->client.process_name},
         {"reason", violation},
         {"suppressed", log_limiter_.TakeSuppressed()}});
  }
  brought.push_back(std::move(connection->channel));
  brought.push_back(std::move(connection->transport));
  os::CloseElsewhere(std::move(brought), std::move(connection->slot));
  registry_.ConnectionEnded(id, MonotonicMs());
  Rearm();
}

void ResourceHub::EndOwnedBy(uint64_t owner) {
  thread_.Assert();
  for (const auto& [id, connection] : connections_) {
    if (connection->client.owner == owner) return End(id, "");  // There is one at most.
  }
}

void ResourceHub::Stop() {
  thread_.Assert();
  while (!connections_.empty()) End(connections_.begin()->first, "");
  allocator_.Stop();
  loop_->CancelTimer(&timer_);
}

// --- memory
// ---------------------------------------------------------------------------------------

void ResourceHub::Create(uint64_t connection, CreateParameters parameters, CreateDone done) {
  thread_.Assert();
  absl::Status checked = CheckParameters(&parameters);
  if (parameters.backing == wire::ResourceBacking::kImported) {
    checked.Update(absl::UnimplementedError(
        "SLUICE_BACKING_IMPORTED is in descriptions only: memory of the caller's becomes a "
        "resource by sluice_import"));
  }
  if (parameters.backing == wire::ResourceBacking::kAny)
    parameters.backing = wire::ResourceBacking::kMemfd;
  const ResourceClient& client = connections_[connection]->client;
  const std::string identity = client.account;
  const uint64_t size = parameters.shape.size_bytes;
  if (checked.ok()) checked = registry_.Reserve(identity, size, client.quota);
  if (!checked.ok()) return done(checked);
  const wire::ResourceBacking backing = parameters.backing;
  const ResourceShape shape = parameters.shape;
  allocator_.Allocate(identity, backing, shape,
                      [this, connection, identity, parameters = std::move(parameters),
                       done = std::move(done)](absl::StatusOr<AllocatedMemory> memory) mutable {
                        FinishCreate(connection, identity, std::move(parameters), std::move(memory),
                                     done);
                      });
}

void ResourceHub::FinishCreate(uint64_t connection, const std::string& identity,
                               CreateParameters parameters, absl::StatusOr<AllocatedMemory> memory,
                               const CreateDone& done) {
  const uint64_t size = parameters.shape.size_bytes;
  absl::Status good = memory.status();
  if (good.ok() && !connections_.contains(connection)) {
    good = absl::UnavailableError("the connection has ended");
  }
  // The resource's descriptor and its fence's; all other kinds have one.
  const size_t count = parameters.backing == wire::ResourceBacking::kD3d11 ? 2 : 1;
  if (good.ok() && memory->fds.size() != count) {
    good = absl::InternalError("the allocator gave another number of handles");
  }
  const os::LentKind wanted = KindOf(parameters.backing);
  if (good.ok()) good = CheckMemory(*memory, wanted, size);
  if (good.ok()) good = os::OpenOwnMemory(&memory->fds);
  if (!good.ok()) {
    registry_.CancelReservation(identity, size);
    return done(good);
  }
  ResourceMemory kept;
  if (parameters.backing == wire::ResourceBacking::kVulkan) kept.ints = VulkanIntsOf(*memory);
  kept.fds = std::move(memory->fds);
  kept.allocation_bytes = memory->allocation_bytes;
  kept.device_uuid = memory->device_uuid;
  if (parameters.backing == wire::ResourceBacking::kGralloc) {
    kept.ints = GrallocIntsOf(parameters.shape);
  }
  kept.kind = wanted;
  done(Keep(connection, identity, std::move(parameters), std::move(kept)));
}

absl::StatusOr<CreatedResource> ResourceHub::Keep(uint64_t connection, const std::string& identity,
                                                  CreateParameters parameters,
                                                  ResourceMemory memory) {
  // Lavapipe's is a memfd, too.
  if (memory.kind != os::LentKind::kDmaBuf) {
    os::TakeOverLentMemory(memory.fds[0].get(), parameters.options.trust_readers);
  }
  return registry_.Create(connection, identity, std::move(parameters.shape), parameters.backing,
                          std::move(parameters.options), std::move(memory));
}

void ResourceHub::Import(uint64_t connection, uint64_t token, CreateParameters parameters,
                         CreateDone done) {
  thread_.Assert();
  ReadOffers(connection);  // The offer was sent before the call, but may not have been looked at.
  const auto found = connections_.find(connection);
  if (found == connections_.end()) {
    return done(absl::UnavailableError("the connection has ended"));
  }
  Connection& peer = *found->second;
  auto offer = peer.offers.extract(token);
  if (!offer.empty()) {
    return done(FinishImport(&peer, std::move(offer.mapped()), std::move(parameters)));
  }
  const auto none = absl::InvalidArgumentError("no handle was offered under this token");
  if (os::kDeliveryMs == 0 || peer.awaited.size() >= wire::kMaxOffers ||
      peer.awaited.contains(token)) {
    return done(none);
  }
  AwaitedOffer& awaited = peer.awaited[token];
  awaited.parameters = std::move(parameters);
  awaited.done = std::move(done);
  awaited.timer = loop_->AddTimer(
      os::kDeliveryMs, [this, connection, token, none] { GiveUpOffer(connection, token, none); });
}

absl::StatusOr<CreatedResource> ResourceHub::FinishImport(Connection* connection,
                                                          absl::StatusOr<os::UniqueFd> fd,
                                                          CreateParameters parameters) {
  RETURN_IF_ERROR(CheckParameters(&parameters));
  RETURN_IF_ERROR(fd.status());
  ResourceMemory memory;
  ASSIGN_OR_RETURN(memory.kind, os::CheckLentMemory(fd->get(), parameters.shape.size_bytes));
  ASSIGN_OR_RETURN(const uint64_t size, os::LentMemoryBytes(fd->get()));
  if (size > kMaxResourceBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the memory has ", size, " bytes; at most ",
                                                   kMaxResourceBytes, " can be imported"));
  }
  memory.brought_bytes = (size + kPageBytes - 1) / kPageBytes * kPageBytes;
  memory.fds.push_back(*std::move(fd));
  const ResourceClient& client = connection->client;
  RETURN_IF_ERROR(registry_.Reserve(client.account, memory.brought_bytes, client.quota));
  parameters.backing = wire::ResourceBacking::kImported;
  return Keep(connection->id, connection->client.account, std::move(parameters), std::move(memory));
}

absl::StatusOr<uint32_t> ResourceHub::Export(uint64_t connection, const std::string& capability,
                                             ResourceAccess access, uint64_t token) {
  thread_.Assert();
  ASSIGN_OR_RETURN(const ResourceView view, registry_.Open(connection, capability, access));
  const Connection& peer = *connections_[connection];
  auto handle = wire::MakeMessage<wire::ResourceHandle>();
  std::vector<os::UniqueFd> lent;
  std::vector<int> numbers;
  for (const os::UniqueFd& fd : view.memory->fds) {
    absl::StatusOr<os::UniqueFd> one =
        access == ResourceAccess::kWrite
            ? os::LendForWriting(fd.get(), view.memory->kind)
            : os::LendForReading(fd.get(), view.memory->kind, peer.client.uid,
                                 view.options->trust_readers);
    if (!one.ok()) return one.status();
    numbers.push_back(one->get());
    lent.push_back(*std::move(one));
  }
  view.memory->lent = true;
  handle.token = token;
  handle.resource_id = view.id;
  handle.size_bytes = view.shape->size_bytes;
  handle.allocation_bytes = view.memory->allocation_bytes;
  handle.backing = static_cast<uint32_t>(view.backing);
  handle.writable = access == ResourceAccess::kWrite ? 1 : 0;
  handle.descriptor_count = static_cast<uint32_t>(numbers.size());
  handle.int_count = static_cast<uint32_t>(view.memory->ints.size());
  std::copy(view.memory->ints.begin(), view.memory->ints.end(), handle.ints);
  std::memcpy(handle.device_uuid, view.memory->device_uuid.data(), sizeof(handle.device_uuid));
  const absl::Status sent = os::SendMessage(peer.channel.get(), &handle, sizeof(handle),
                                            numbers.data(), static_cast<int>(numbers.size()));
  if (absl::IsUnavailable(sent)) {
    return absl::ResourceExhaustedError("too many handles lie unread on the handle channel");
  }
  if (absl::IsAborted(sent)) return absl::UnavailableError("the connection has ended");
  if (!sent.ok()) return sent;
  return handle.descriptor_count;
}

// --- what the registry does, and the clock
// ----------------------------------------------------------

void ResourceHub::Acquire(uint64_t connection, uint64_t hold_id, const std::string& capability,
                          ResourceAccess access, uint64_t timeout_ms,
                          ResourceRegistry::AcquireDone done) {
  thread_.Assert();
  registry_.Acquire(connection, hold_id, capability, access, MonotonicMs(), timeout_ms,
                    std::move(done));
  Rearm();
}

void ResourceHub::Cancel(uint64_t connection, uint64_t hold_id) {
  thread_.Assert();
  registry_.Cancel(connection, hold_id);
  Rearm();
}

absl::StatusOr<uint64_t> ResourceHub::Release(uint64_t connection, uint64_t hold_id,
                                              ResourceTurns::Contents contents) {
  thread_.Assert();
  absl::StatusOr<uint64_t> generation = registry_.Release(connection, hold_id, contents);
  Rearm();
  return generation;
}

absl::Status ResourceHub::Destroy(const std::string& capability) {
  thread_.Assert();
  absl::Status destroyed = registry_.Destroy(capability);
  Rearm();
  return destroyed;
}

absl::StatusOr<ResourceView> ResourceHub::Describe(uint64_t connection,
                                                   const std::string& capability) {
  thread_.Assert();
  return registry_.Open(connection, capability, ResourceAccess::kRead);
}

absl::StatusOr<uint64_t> ResourceHub::Watch(uint64_t connection, const std::string& capability,
                                            ResourceRegistry::WatchCallback callback) {
  thread_.Assert();
  return registry_.Watch(connection, capability, std::move(callback));
}

void ResourceHub::Unwatch(uint64_t watch_id) {
  thread_.Assert();
  registry_.Unwatch(watch_id);
  Rearm();
}

void ResourceHub::AddQuotas(const Account& account, std::vector<QuotaUse>* quotas) const {
  thread_.Assert();
  using wire::QuotaKind;
  const auto limit_of = [](uint64_t own, uint64_t of_user) { return own != 0 ? own : of_user; };
  quotas->push_back({QuotaKind::kResources, registry_.CountOf(account.name),
                     limit_of(account.limits.max_resources, config_.max_resources_per_user)});
  quotas->push_back({QuotaKind::kResourceBytes, registry_.BytesOf(account.name),
                     limit_of(account.limits.max_resource_bytes, config_.max_bytes_per_user)});
  quotas->push_back({QuotaKind::kResourceConnections, slots_.CountOf(account.name),
                     config_.max_connections_per_user});
}

// A timer that is due too early costs a look; one that was cancelled and made again for every
// acquire would cost more.
void ResourceHub::Rearm() {
  const std::optional<int64_t> due_ms = registry_.NextDueMs();
  if (!due_ms.has_value() || (timer_ != 0 && timer_due_ms_ <= *due_ms)) return;
  loop_->CancelTimer(&timer_);
  timer_due_ms_ = *due_ms;
  timer_ = loop_->AddTimer(std::max<int64_t>(*due_ms - MonotonicMs(), 0), [this] {
    timer_ = 0;
    registry_.AdvanceTo(MonotonicMs());
    Rearm();
  });
}

}  // namespace sluice::broker
