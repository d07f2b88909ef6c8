// SPDX-License-Identifier: Apache-2.0
#include "client_icd/libsluice/resource_connection.h"

#include <grpcpp/grpcpp.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "broker/base/peer_version.h"
#include "broker/os/lasting_thread.h"
#include "broker/os/lent_memory.h"
#include "broker/os/local_socket.h"
#include "broker/os/threads.h"
#include "client_icd/connect/broker_greeting.h"
#include "client_icd/libsluice/grpc_process.h"
#include "client_icd/remote/grpc_start.h"
#include "proto/resource_messages.h"

namespace sluice::client {
namespace {

constexpr int kOpenTimeoutMs = 10'000;
constexpr int kHandleTimeoutMs = 10'000;
// How long a daemon may take that hangs or is stopped; sluice.h says both. An answer that comes
// later than the second time is of no use to a caller who named one.
constexpr std::chrono::seconds kBackstop{30};
constexpr std::chrono::seconds kAcquireBackstop{5};

// Memory that will be mapped must not be able to shrink under this process, whoever made it.
absl::Status CheckMappable(const wire::ResourceHandle& message, int fd) {
  uint64_t end = message.size_bytes;
  switch (static_cast<wire::ResourceBacking>(message.backing)) {
    case wire::ResourceBacking::kD3d11:
      return absl::OkStatus();
    case wire::ResourceBacking::kVulkan: {
      const auto offset = wire::VulkanMapOffset(message.ints, message.int_count);
      if (!offset.has_value()) return absl::OkStatus();
      end += *offset;
      if (end < *offset) return absl::InternalError("a broken handle from the daemon");
      break;
    }
    default:
      break;
  }
  return os::CheckLentMemory(fd, end).status();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ResourceConnection>> ResourceConnection::Connect(
    const std::string& path) {
  wire::Welcome welcome;
  std::vector<os::UniqueFd> fds;
  ASSIGN_OR_RETURN(os::UniqueFd broker, GreetBroker(path, wire::kResourcesFeature, &welcome, &fds));
  if (!wire::IsTerminated(welcome.features) ||
      !absl::StrContains(absl::StrCat(",", welcome.features, ","),
                         absl::StrCat(",", wire::kResourcesFeature, ","))) {
    const std::string_view features = wire::IsTerminated(welcome.features) ? welcome.features : "";
    return absl::NotFoundError(
        absl::StrCat("the daemon is too old to share resources; ",
                     VersionAdvice("libsluice", "daemon", VersionIn(features))));
  }
  const auto open = wire::MakeMessage<wire::OpenResources>();
  RETURN_IF_ERROR(os::SendMessage(broker.get(), &open, sizeof(open)));
  ASSIGN_OR_RETURN(
      const wire::ResourcesOpened opened,
      ReceiveFromBroker<wire::ResourcesOpened>(broker.get(), AnswerTime(kOpenTimeoutMs), &fds, 2));
  if (opened.status != 0) {
    const std::string why =
        BrokerRefusal("the daemon opens no resource connection", opened.status, opened.message);
    if (opened.status == EBUSY) return absl::ResourceExhaustedError(why);
    return absl::NotFoundError(why);
  }
  if (fds.size() != 2) return absl::InternalError("a resource connection without its descriptors");
  std::unique_ptr<ResourceConnection> connection(
      new ResourceConnection(std::move(broker), std::move(fds[1])));
  if (const absl::Status usable = ClaimGrpc(); usable.ok()) {
    RETURN_IF_ERROR(StartGrpc());
    ASSIGN_OR_RETURN(ResourceChannel transport, OpenResourceChannel(std::move(fds[0])));
    connection->stub_ = v1::Resources::NewStub(transport.channel);
    connection->transport_ = std::make_shared<const ResourceChannel>(std::move(transport));
  } else {
    ASSIGN_OR_RETURN(connection->helper_, ResourceHelper::Start(std::move(fds[0]), usable));
  }
  return connection;
}

ResourceConnection::~ResourceConnection() {
  // gRPC's threads are not in a child; what it would wait for does not come. The stub keeps the
  // channel.
  if (!CheckProcess().ok()) stub_.release();  // NOLINT(bugprone-unused-return-value)
}

absl::Status ResourceConnection::CheckProcess() const {
  if (os::OtherThreadsWereEnded())
    return absl::UnavailableError("the process ends");  // gRPC's too.
  if (pid_ == os::ProcessId()) return absl::OkStatus();
  return absl::UnavailableError("this connection belongs to the process that forked this one");
}

template <typename Request, typename Reply>
absl::Status ResourceConnection::Call(
    grpc::Status (v1::Resources::Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
    const char* name, const Request& request, Reply* reply, std::chrono::milliseconds patience) {
  if (absl::Status here = CheckProcess(); !here.ok()) return here;
  const auto deadline = std::chrono::system_clock::now() + patience;
  absl::Status told;
  if (helper_ != nullptr) {
    told = helper_->Call(absl::StrCat("/", v1::Resources::service_full_name(), "/", name).c_str(),
                         request, static_cast<uint64_t>(patience.count()), reply);
  } else {
    grpc::ClientContext context;
    transport_->Prepare(&context);
    context.set_deadline(deadline);
    grpc::Status status;
    os::RunWhereIoLasts([&] { status = (stub_.get()->*method)(&context, request, reply); });
    told = FromGrpc(transport_->Check(context, status));
  }
  // The daemon's own, of a turn that does not come, is there before.
  if (absl::IsDeadlineExceeded(told) && std::chrono::system_clock::now() >= deadline) {
    return absl::DeadlineExceededError(
        absl::StrCat("the daemon has not answered in ", patience.count(), " ms"));
  }
  return told;
}

absl::StatusOr<v1::CreateResourceReply> ResourceConnection::Create(
    const v1::CreateResourceRequest& request) {
  v1::CreateResourceReply reply;
  RETURN_IF_ERROR(Call(&v1::Resources::Stub::Create, "Create", request, &reply, kBackstop));
  return reply;
}

absl::StatusOr<v1::CreateResourceReply> ResourceConnection::Import(
    v1::ImportResourceRequest request, int fd) {
  if (absl::Status here = CheckProcess(); !here.ok()) return here;
  auto offer = wire::MakeMessage<wire::OfferHandle>();
  offer.token = next_token_.fetch_add(1, std::memory_order_relaxed);
  request.set_token(offer.token);
  const absl::Status sent = os::SendMessage(channel_.get(), &offer, sizeof(offer), &fd, 1);
  if (absl::IsAborted(sent)) return absl::UnavailableError("the daemon is gone");
  if (!sent.ok()) return sent;
  v1::CreateResourceReply reply;
  RETURN_IF_ERROR(Call(&v1::Resources::Stub::Import, "Import", request, &reply, kBackstop));
  return reply;
}

absl::StatusOr<ExportedHandle> ResourceConnection::Export(const std::string& capability,
                                                          v1::ResourceAccess access) {
  v1::ExportResourceRequest request;
  request.set_capability(capability);
  request.set_access(access);
  request.set_token(next_token_.fetch_add(1, std::memory_order_relaxed));
  absl::MutexLock lock(&channel_mutex_);
  v1::ExportResourceReply reply;
  RETURN_IF_ERROR(Call(&v1::Resources::Stub::Export, "Export", request, &reply, kBackstop));
  return ReceiveHandle(request.token());
}

absl::StatusOr<ExportedHandle> ResourceConnection::ReceiveHandle(uint64_t token) {
  while (true) {
    RETURN_IF_ERROR(os::WaitReadable(channel_.get(), kHandleTimeoutMs));
    ExportedHandle handle;
    char packet[wire::kMaxBrokerMessageBytes];
    ASSIGN_OR_RETURN(const size_t size,
                     os::ReceiveMessage(channel_.get(), packet, sizeof(packet), &handle.fds,
                                        wire::kMaxResourceDescriptors));
    if (size == 0) return absl::UnavailableError("the daemon is gone");
    wire::ResourceHandle& message = handle.message;
    if (!wire::ParseMessage(packet, size, &message) || message.int_count > wire::kMaxGrallocInts ||
        message.descriptor_count != handle.fds.size() || handle.fds.empty()) {
      return absl::InternalError("a broken handle from the daemon");
    }
    if (message.token != token) continue;  // Of an Export that was given up.
    RETURN_IF_ERROR(CheckMappable(message, handle.fds[0].get()));
    return handle;
  }
}

absl::StatusOr<v1::AcquireResourceReply> ResourceConnection::Acquire(
    v1::AcquireResourceRequest request, uint64_t* hold_id) {
  *hold_id = next_hold_.fetch_add(1, std::memory_order_relaxed);
  request.set_hold_id(*hold_id);
  v1::AcquireResourceReply reply;
  const std::chrono::milliseconds patience =
      kAcquireBackstop + std::chrono::milliseconds(request.timeout_ms());
  const auto given_up = std::chrono::system_clock::now() + patience;
  const absl::Status taken =
      Call(&v1::Resources::Stub::Acquire, "Acquire", request, &reply, patience);
  if (absl::IsDeadlineExceeded(taken) && std::chrono::system_clock::now() >= given_up)
    ReleaseUnheard(*hold_id);
  if (!taken.ok()) return taken;
  return reply;
}

// The deadline that withdraws an acquire at the daemon may cross its answer. Nobody waits for this.
void ResourceConnection::ReleaseUnheard(uint64_t hold_id) {
  if (helper_ != nullptr) return;  // Its calls are waited for: such a hold ends with the child.
  struct Unheard {
    grpc::ClientContext context;
    v1::ReleaseResourceRequest request;
    v1::ReleaseResourceReply reply;
  };
  auto* call = new Unheard;
  transport_->Prepare(&call->context);
  call->context.set_deadline(std::chrono::system_clock::now() + kBackstop);
  call->request.set_hold_id(hold_id);
  call->request.set_contents_untouched(true);
  os::RunWhereIoLasts([&] {
    stub_->async()->Release(&call->context, &call->request, &call->reply,
                            [call](const grpc::Status&) { delete call; });
  });
}

absl::Status ResourceConnection::Release(const v1::ReleaseResourceRequest& request) {
  v1::ReleaseResourceReply reply;
  return Call(&v1::Resources::Stub::Release, "Release", request, &reply, kBackstop);
}

absl::Status ResourceConnection::Destroy(const std::string& capability) {
  v1::DestroyResourceRequest request;
  request.set_capability(capability);
  v1::DestroyResourceReply reply;
  return Call(&v1::Resources::Stub::Destroy, "Destroy", request, &reply, kBackstop);
}

absl::StatusOr<v1::ResourceDescription> ResourceConnection::Describe(
    const std::string& capability) {
  v1::DescribeResourceRequest request;
  request.set_capability(capability);
  v1::ResourceDescription reply;
  RETURN_IF_ERROR(Call(&v1::Resources::Stub::Describe, "Describe", request, &reply, kBackstop));
  return reply;
}

absl::StatusOr<std::unique_ptr<ResourceWatch>> ResourceConnection::Watch(
    const std::string& capability) {
  if (absl::Status here = CheckProcess(); !here.ok()) return here;
  v1::WatchResourceRequest request;
  request.set_capability(capability);
  std::unique_ptr<ResourceWatch> watch;
  if (helper_ != nullptr) {
    ASSIGN_OR_RETURN(watch, helper_->Watch(request));
  } else {
    // gRPC starts threads with a channel's first, and would wait for them for ever.
    if (!has_watched_.load(std::memory_order_relaxed)) RETURN_IF_ERROR(CheckRoomForGrpcThreads());
    has_watched_.store(true, std::memory_order_relaxed);
    watch = std::make_unique<GrpcWatch>(stub_.get(), transport_, std::move(request));
  }
  RETURN_IF_ERROR(watch->WaitForFirst(absl::FromChrono(kBackstop)));
  return watch;
}

}  // namespace sluice::client
