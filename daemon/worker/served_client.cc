// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/served_client.h"

#include <utility>

#include "broker/os/local_socket.h"
#include "proto/handle_messages.h"
#include "proto/memory_messages.h"
#include "proto/ring_abi.h"
#include "proto/status_macros.h"

namespace sluice::worker {

void Notice(int control, wire::WorkerNoticeKind kind, std::string_view text) {
  wire::WorkerNotice notice = wire::MakeMessage<wire::WorkerNotice>();
  notice.kind = static_cast<uint32_t>(kind);
  wire::SetString(notice.text, text);
  (void)os::SendMessage(control, &notice, sizeof(notice));
}

// Made and sealed here, mapped here, its descriptor for the client.
absl::StatusOr<ServedClient::Ring> ServedClient::MakeRing(const char* name) {
  ASSIGN_OR_RETURN(os::UniqueFd file, os::CreateSharedMemory(name, wire::kRingFileBytes));
  ASSIGN_OR_RETURN(os::SharedMapping mapping,
                   os::SharedMapping::Map(file.get(), wire::kRingFileBytes, /*writable=*/true));
  return Ring{std::move(file), std::move(mapping)};
}

absl::StatusOr<std::unique_ptr<ServedClient>> ServedClient::Create(const SessionOptions& options,
                                                                   int channel, int control) {
  std::unique_ptr<ServedClient> client(new ServedClient(channel, control));
  ASSIGN_OR_RETURN(client->commands_, MakeRing("sluice-commands"));
  ASSIGN_OR_RETURN(client->replies_, MakeRing("sluice-replies"));
  client->session_ = std::make_unique<Session>(options, channel, client->replies_.mapping.data());
  client->loop_ =
      std::make_unique<CommandLoop>(client->session_.get(), client->commands_.mapping.data());
  return client;
}

// Its account's device memory is the broker's to grant.
void ServedClient::AttachGrant() {
  const uint64_t limit = session_->options().limits.account_memory_bytes;
  if (limit == 0) return;
  MemoryGrant::Broker broker;
  broker.want = [control = control_](uint64_t serial, uint64_t bytes, bool ahead) {
    auto message = wire::MakeMessage<wire::WantMemory>();
    message.serial = serial;
    message.bytes = bytes;
    message.ahead = ahead ? 1 : 0;
    return os::SendMessage(control, &message, sizeof(message)).ok();
  };
  broker.give_back = [control = control_](uint64_t bytes) {
    auto message = wire::MakeMessage<wire::MemoryReturned>();
    message.bytes = bytes;
    (void)os::SendMessage(control, &message, sizeof(message));
  };
  session_->quota().grant().Attach(std::move(broker), limit);
}

absl::Status ServedClient::OfferRings() {
  wire::HandleMessage offer = {};
  offer.magic = wire::kHandleMagic;
  offer.type = wire::HandleMessageType::kRingOffer;
  offer.size = wire::kRingFileBytes;
  offer.flags = wire::kTakesImports;
  const int fds[] = {commands_.file.get(), replies_.file.get()};
  return os::SendMessage(channel_, &offer, sizeof(offer), fds, 2);
}

void ServedClient::SayReady() const {
  const auto ready = wire::MakeMessage<wire::WorkerReady>();
  (void)os::SendMessage(control_, &ready, sizeof(ready));
}

void ServedClient::TellEnd(std::string_view reason) {
  pb::Reply reply;
  reply.mutable_session_ended()->set_reason(std::string(reason));
  session_->replies().Send(reply, wire::Wake::kUrgent);
}

void ServedClient::SendStats() {
  wire::WorkerStats stats = wire::MakeMessage<wire::WorkerStats>();
  const SessionCounts& counts = session_->counts;
  stats.memory_bytes = session_->quota().memory_bytes();
  stats.object_count = counts.objects.load(std::memory_order_relaxed);
  stats.commands_executed = counts.commands.load(std::memory_order_relaxed);
  stats.context_count = counts.contexts.load(std::memory_order_relaxed);
  stats.imported_objects = counts.imported.load(std::memory_order_relaxed);
  stats.shadowed_objects = counts.shadowed.load(std::memory_order_relaxed);
  stats.staged_objects = counts.staged.load(std::memory_order_relaxed);
  wire::SetString(stats.device_name, session_->device_name());
  (void)os::SendMessage(control_, &stats, sizeof(stats));
}

void ServedClient::SendShadowStats() {
  wire::ShadowStats stats = wire::MakeMessage<wire::ShadowStats>();
  stats.by_semaphores = session_->counts.semaphored.load(std::memory_order_relaxed);
  stats.by_keyed_mutex = session_->counts.mutexed.load(std::memory_order_relaxed);
  (void)os::SendMessage(control_, &stats, sizeof(stats));
}

ServedClient::Control ServedClient::OnControl() {
  char buffer[wire::kMaxBrokerMessageBytes];
  const absl::StatusOr<size_t> size =
      os::ReceiveMessage(control_, buffer, sizeof(buffer), nullptr, 0);
  if (!size.ok() || *size == 0) return {true, std::nullopt};
  wire::Terminate terminate;
  if (wire::ParseMessage(buffer, *size, &terminate) && wire::IsTerminated(terminate.reason))
    return {false, terminate.reason};
  const uint16_t type = wire::PeekMessageType(buffer, *size);
  if (type == static_cast<uint16_t>(wire::MessageType::kStatsRequest)) SendStats();
  if (type == static_cast<uint16_t>(wire::MessageType::kShadowStatsRequest)) SendShadowStats();
  wire::GrantMemory granted;
  if (wire::ParseMessage(buffer, *size, &granted))
    session_->quota().grant().OnGranted(granted.serial, granted.bytes);
  wire::SpareMemory spare;
  if (wire::ParseMessage(buffer, *size, &spare)) session_->quota().grant().OnSpare();
  return {};
}

}  // namespace sluice::worker
