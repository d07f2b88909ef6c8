// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/broker_client.h"

#include <CL/cl.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "broker/os/local_socket.h"
#include "broker/os/shared_memory.h"
#include "proto/broker_messages.h"
#include "proto/command.pb.h"
#include "proto/quota_messages.h"
#include "proto/ring_reader.h"
#include "proto/snapshot.pb.h"
#include "proto/status_macros.h"

namespace sluice::ctl {
namespace {

constexpr size_t kMaxSnapshotBytes = size_t{4} << 20;
constexpr uint64_t kMaxFirstWordsBytes = 64 << 10;

using InfoList = google::protobuf::RepeatedPtrField<v1::InfoValue>;

std::string Text(const InfoList& list, cl_uint param) {
  for (const v1::InfoValue& info : list) {
    if (info.param_name() == param) return info.value().c_str();  // Up to the NUL.
  }
  return "";
}

template <typename T>
T Number(const InfoList& list, cl_uint param) {
  T value{};
  for (const v1::InfoValue& info : list) {
    if (info.param_name() == param && info.value().size() == sizeof(T)) {
      std::memcpy(&value, info.value().data(), sizeof(T));
    }
  }
  return value;
}

std::string TypeName(cl_device_type type) {
  if ((type & CL_DEVICE_TYPE_GPU) != 0) return "GPU";
  if ((type & CL_DEVICE_TYPE_CPU) != 0) return "CPU";
  if ((type & CL_DEVICE_TYPE_ACCELERATOR) != 0) return "accelerator";
  return "custom";
}

// One message, and what came with it, within the time.
absl::StatusOr<size_t> ReceiveWithin(int socket, int timeout_ms, char* packet,
                                     std::vector<os::UniqueFd>* fds) {
  if (absl::Status ready = os::WaitReadable(socket, timeout_ms); !ready.ok()) return ready;
  absl::StatusOr<size_t> size =
      os::ReceiveMessage(socket, packet, wire::kMaxBrokerMessageBytes, fds, 1);
  if (size.ok() && *size == 0) return absl::AbortedError("the daemon closed the connection");
  return size;
}

// A worker that cannot start says so in its replies before it offers them.
absl::Status FirstWords(int replies) {
  RETURN_IF_ERROR(os::VerifySharedMemory(replies, wire::kRingFileBytes));
  ASSIGN_OR_RETURN(os::SharedMapping ring, os::SharedMapping::Map(replies, wire::kRingFileBytes,
                                                                  /*writable=*/true, nullptr));
  wire::RingReader reader(ring.data(), kMaxFirstWordsBytes);
  wire::Frame frame;
  ASSIGN_OR_RETURN(const bool there, reader.Next(&frame));
  v1::Reply reply;
  if (!there ||
      !reply.ParseFromArray(frame.message().data(), static_cast<int>(frame.message().size()))) {
    return absl::OkStatus();
  }
  if (!reply.has_session_ended()) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrCat("the session's worker ended: ", reply.session_ended().reason()));
}

}  // namespace

absl::StatusOr<Greeting> Greet(const std::string& socket_path, int timeout_ms) {
  absl::StatusOr<os::UniqueFd> socket = os::ConnectLocal(socket_path, timeout_ms);
  if (!socket.ok()) return socket.status();
  auto hello = wire::MakeMessage<wire::Hello>();
  wire::SetString(hello.process_name, "sluicectl");
  wire::SetString(hello.features, wire::kFeatureQuotas);
  absl::Status sent = os::SendMessage(socket->get(), &hello, sizeof(hello));
  if (!sent.ok()) return sent;
  char packet[wire::kMaxBrokerMessageBytes];
  std::vector<os::UniqueFd> fds;
  const absl::StatusOr<size_t> size = ReceiveWithin(socket->get(), timeout_ms, packet, &fds);
  if (absl::IsDeadlineExceeded(size.status())) {
    return absl::DeadlineExceededError(
        absl::StrCat("it takes connections, but does not answer in ", timeout_ms, " ms"));
  }
  if (!size.ok()) return size.status();
  wire::Welcome welcome;
  if (!wire::ParseMessage(packet, *size, &welcome) || !wire::IsTerminated(welcome.message)) {
    return absl::InternalError("what answers there does not speak Sluice's protocol");
  }
  if (welcome.status == EACCES) return absl::PermissionDeniedError(welcome.message);
  if (welcome.status != 0) return absl::ResourceExhaustedError(welcome.message);
  if (fds.size() != 1) return absl::InternalError("the daemon sent no snapshot");
  absl::StatusOr<std::string> snapshot = os::ReadSealedCopy(fds[0].get(), kMaxSnapshotBytes);
  if (!snapshot.ok()) return snapshot.status();
  const bool tells_quotas = wire::IsTerminated(welcome.features) &&
                            wire::HasFeature(welcome.features, wire::kFeatureQuotas);
  return Greeting{*std::move(socket), welcome.message, *std::move(snapshot), welcome.session_limit,
                  tells_quotas};
}

absl::StatusOr<ToldQuotas> AskQuotas(int socket, int timeout_ms) {
  const auto ask = wire::MakeMessage<wire::AskQuotas>();
  RETURN_IF_ERROR(os::SendMessage(socket, &ask, sizeof(ask)));
  char packet[wire::kMaxBrokerMessageBytes];
  std::vector<os::UniqueFd> fds;
  ASSIGN_OR_RETURN(const size_t size, ReceiveWithin(socket, timeout_ms, packet, &fds));
  wire::Quotas answer;
  if (!wire::ParseMessage(packet, size, &answer) || !wire::IsTerminated(answer.account) ||
      answer.count > wire::kMostQuotas) {
    return absl::InternalError("the daemon sent no Quotas");
  }
  ToldQuotas told;
  told.account = answer.account;
  for (uint32_t i = 0; i < answer.count; ++i) {
    const wire::Quota& quota = answer.quotas[i];
    const char* name = wire::QuotaName(static_cast<wire::QuotaKind>(quota.kind));
    if (name == nullptr) continue;
    told.quotas.push_back({name, std::nullopt, quota.limit});
    if (quota.counted != 0) told.quotas.back().used = quota.used;
  }
  return told;
}

absl::Status TrySession(int socket, int timeout_ms) {
  const auto open = wire::MakeMessage<wire::OpenSession>();
  if (absl::Status sent = os::SendMessage(socket, &open, sizeof(open)); !sent.ok()) return sent;
  char packet[wire::kMaxBrokerMessageBytes];
  std::vector<os::UniqueFd> fds;
  const absl::StatusOr<size_t> size = ReceiveWithin(socket, timeout_ms, packet, &fds);
  if (!size.ok()) return size.status();
  wire::SessionOpened opened;
  if (!wire::ParseMessage(packet, *size, &opened) || !wire::IsTerminated(opened.message)) {
    return absl::InternalError("the daemon sent no SessionOpened");
  }
  if (opened.status != 0) return absl::ResourceExhaustedError(opened.message);
  if (fds.size() != 1) return absl::InternalError("the daemon sent no handle channel");
  // The worker's first message comes once it has loaded its driver and is ready for commands.
  const os::UniqueFd channel = std::move(fds[0]);
  const absl::Status ready = os::WaitReadable(channel.get(), timeout_ms);
  if (!ready.ok()) return absl::DeadlineExceededError("the session's worker does not get ready");
  const absl::StatusOr<size_t> offer =
      os::ReceiveMessage(channel.get(), packet, sizeof(packet), &fds, 2);
  if (offer.ok() && *offer == 0) return absl::AbortedError("the session's worker ended at once");
  if (!offer.ok()) return offer.status();
  if (fds.size() != 2) return absl::InternalError("the session's worker offered no rings");
  return FirstWords(fds[1].get());
}

absl::StatusOr<std::vector<PlatformSummary>> DecodeSnapshot(const std::string& bytes) {
  v1::PlatformSnapshot snapshot;
  if (!snapshot.ParseFromString(bytes)) {
    return absl::InternalError(
        "the daemon's snapshot of devices does not parse; are sluicectl and "
        "sluiced of one release?");
  }
  std::vector<PlatformSummary> platforms;
  for (const v1::PlatformSnapshot::Platform& from : snapshot.platforms()) {
    PlatformSummary platform;
    platform.name = Text(from.info(), CL_PLATFORM_NAME);
    platform.vendor = Text(from.info(), CL_PLATFORM_VENDOR);
    platform.version = Text(from.info(), CL_PLATFORM_VERSION);
    for (const v1::PlatformSnapshot::Device& device : from.devices()) {
      DeviceSummary summary;
      summary.name = Text(device.info(), CL_DEVICE_NAME);
      summary.vendor = Text(device.info(), CL_DEVICE_VENDOR);
      summary.type = TypeName(Number<cl_device_type>(device.info(), CL_DEVICE_TYPE));
      summary.driver_version = Text(device.info(), CL_DRIVER_VERSION);
      summary.device_version = Text(device.info(), CL_DEVICE_VERSION);
      summary.compute_units = Number<cl_uint>(device.info(), CL_DEVICE_MAX_COMPUTE_UNITS);
      summary.global_memory_bytes = Number<cl_ulong>(device.info(), CL_DEVICE_GLOBAL_MEM_SIZE);
      platform.devices.push_back(std::move(summary));
    }
    platforms.push_back(std::move(platform));
  }
  return platforms;
}

}  // namespace sluice::ctl
