// SPDX-License-Identifier: Apache-2.0
#include "broker/children/allocator_link.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/base/log.h"
#include "broker/children/helper_environment.h"
#include "broker/os/close_elsewhere.h"
#include "broker/os/local_socket.h"
#include "proto/status_macros.h"

namespace sluice::broker {
namespace {

constexpr int kSocketFd = 3;
constexpr size_t kMaxWaiting = 64;  // Of one identity.
constexpr int64_t kAnswerTimeoutMs = 10'000;
constexpr int64_t kRestartPauseMs = 500;  // Against one that ends as soon as it begins.
constexpr int kAllocatorMessagesPerWakeUp = 16;

absl::Status ToStatus(const wire::MemoryAllocated& answer) {
  const std::string why = answer.message[0] != '\0' ? answer.message : std::strerror(answer.status);
  if (answer.status == EOPNOTSUPP) return absl::FailedPreconditionError(why);
  if (answer.status == EINVAL) return absl::InvalidArgumentError(why);
  return absl::ResourceExhaustedError(absl::StrCat("the daemon's allocator: ", why));
}

// The code is not UNAVAILABLE, which would say that the caller's own connection is at its end.
absl::Status Ended() {
  return absl::InternalError("the daemon's allocator has ended; try again in a second");
}

}  // namespace

absl::Status AllocatorLink::EnsureRunning() {
  if (process_.valid()) return absl::OkStatus();
  if (started_ms_ != 0 && MonotonicMs() - started_ms_ < kRestartPauseMs) {
    return Ended();
  }
  absl::Status started = Spawn();
  if (started.ok()) return started;
  Log(LogLevel::kError, "broker", "cannot start the allocator", {{"reason", started.ToString()}});
  return absl::InternalError("the daemon's allocator cannot be started; the daemon's log says why");
}

absl::Status AllocatorLink::Spawn() {
  started_ms_ = MonotonicMs();
  os::SpawnOptions options;
  ASSIGN_OR_RETURN(options.path, os::FindHelperExecutable("sluice-allocator"));
  options.environment = HelperEnvironment({"VK_ICD_FILENAMES", "VK_DRIVER_FILES"});
  options.sandbox.user = user_;
  options.sandbox.stays_in_session = true;
  options.arguments = confinement_arguments_;
  options.arguments.push_back(
      absl::StrCat("--log-level=", std::string(LogLevelName(CurrentLogLevel()))));
  ASSIGN_OR_RETURN(auto sockets, os::CreateSocketPair());
  RETURN_IF_ERROR(os::SetNonBlocking(sockets.first.get(), true));
  options.descriptors.emplace_back(sockets.second.get(), kSocketFd);
  ASSIGN_OR_RETURN(const os::UniqueFd output, output_.Open({"task", "resources"}));
  options.output = output.get();
  ASSIGN_OR_RETURN(process_, os::Spawn(options));
  socket_ = std::move(sockets.first);
  exit_watch_.Start(&process_, [this](const os::ExitStatus& status) { OnExit(status); });
  socket_watch_ = loop_->Watch(socket_.get(), [this] { OnReadable(); });
  Log(LogLevel::kInfo, "broker", "allocator started", {{"pid", process_.pid()}});
  return absl::OkStatus();
}

absl::Status AllocatorLink::Ask(wire::ResourceBacking backing, const ResourceShape& shape,
                                uint64_t request_id) {
  if (backing != wire::ResourceBacking::kD3d11) {
    auto request = wire::MakeMessage<wire::AllocateMemory>();
    request.request_id = request_id;
    request.size_bytes = shape.size_bytes;
    request.backing = static_cast<uint32_t>(backing);
    return os::SendMessage(socket_.get(), &request, sizeof(request));
  }
  auto request = wire::MakeMessage<wire::AllocateTexture>();
  request.request_id = request_id;
  request.size_bytes = shape.size_bytes;
  if (shape.image.has_value()) {
    const ResourceImage& image = *shape.image;  // Within kMaxImageExtent, each.
    request.width = static_cast<uint32_t>(image.width);
    request.height = static_cast<uint32_t>(image.height);
    request.depth = static_cast<uint32_t>(image.depth);
    request.array_layers = static_cast<uint32_t>(image.array_layers);
    request.channel_order = image.channel_order;
    request.channel_type = image.channel_type;
    request.drm_fourcc = image.drm_fourcc;
  }
  return os::SendMessage(socket_.get(), &request, sizeof(request));
}

void AllocatorLink::Allocate(const std::string& identity, wire::ResourceBacking backing,
                             const ResourceShape& shape, Done done) {
  thread_.Assert();
  if (waiting_.CountOf(identity) >= kMaxWaiting) {
    return done(absl::ResourceExhaustedError("too many allocations at once; try again"));
  }
  waiting_.Push(identity, {backing, shape, std::move(done)});
  AskNext();
}

void AllocatorLink::AskNext() {
  while (!asked_.has_value() && !waiting_.empty()) {
    Request next = waiting_.Pop();
    const uint64_t request_id = next_request_++;
    absl::Status ready = EnsureRunning();
    if (ready.ok() && !Ask(next.backing, next.shape, request_id).ok()) ready = Ended();
    if (!ready.ok()) {
      next.done(ready);
      continue;
    }
    const EventLoop::TimerId timer = loop_->AddTimer(kAnswerTimeoutMs, [this] {
      asked_->timer = 0;
      Kill("it does not answer");
    });
    asked_ = {request_id, next.backing, std::move(next.done), timer};
  }
}

void AllocatorLink::OnReadable() {
  for (int i = 0; i < kAllocatorMessagesPerWakeUp && socket_watch_ != 0; ++i) {
    char packet[wire::kMaxBrokerMessageBytes];
    std::vector<os::UniqueFd> brought;
    const absl::StatusOr<size_t> size = os::ReceiveMessage(socket_.get(), packet, sizeof(packet),
                                                           &brought, wire::kMaxResourceDescriptors);
    os::StrangersFds fds(std::move(brought));
    if (absl::IsUnavailable(size.status())) return;
    if (!size.ok()) return Kill(std::string(size.status().message()));
    if (*size == 0) {
      loop_->Unwatch(&socket_watch_);
      return process_.KillGroup();  // Its exit follows, also if it has only closed the socket.
    }
    wire::MemoryAllocated answer;
    wire::VulkanAllocated vulkan;
    bool good = false;
    if (wire::ParseMessage(packet, *size, &answer)) {
      good = wire::IsTerminated(answer.message) && HandleAnswer(answer, std::move(fds));
    } else if (wire::ParseMessage(packet, *size, &vulkan)) {
      good = HandleVulkan(vulkan, std::move(fds));
    }
    if (!good) return Kill("malformed message");
  }
}

bool AllocatorLink::HandleAnswer(const wire::MemoryAllocated& answer, os::StrangersFds fds) {
  const bool good = answer.status == 0 && !fds.empty();
  if (answer.descriptor_count != fds.size() || good != (answer.status == 0)) return false;
  if (!good) return Finish(answer.request_id, ToStatus(answer));
  AllocatedMemory memory;
  memory.fds = std::move(fds);
  memory.allocation_bytes = answer.allocation_bytes;
  std::memcpy(memory.device_uuid.data(), answer.device_uuid, memory.device_uuid.size());
  return Finish(answer.request_id, std::move(memory));
}

bool AllocatorLink::HandleVulkan(const wire::VulkanAllocated& answer, os::StrangersFds fds) {
  if (fds.size() != 1 || answer.mappable > 1 || !asked_.has_value() ||
      asked_->backing != wire::ResourceBacking::kVulkan) {
    return false;
  }
  AllocatedMemory memory;
  memory.fds = std::move(fds);
  memory.allocation_bytes = answer.allocation_bytes;
  std::memcpy(memory.device_uuid.data(), answer.device_uuid, memory.device_uuid.size());
  std::memcpy(memory.driver_uuid.data(), answer.driver_uuid, memory.driver_uuid.size());
  if (answer.mappable == 1) memory.map_offset = answer.map_offset;
  return Finish(answer.request_id, std::move(memory));
}

bool AllocatorLink::Finish(uint64_t request_id, absl::StatusOr<AllocatedMemory> memory) {
  if (!asked_.has_value() || asked_->request_id != request_id) return false;
  Answer(std::move(memory));
  AskNext();
  return true;
}

void AllocatorLink::Answer(absl::StatusOr<AllocatedMemory> memory) {
  if (!asked_.has_value()) return;
  Asked asked = *std::exchange(asked_, std::nullopt);
  loop_->CancelTimer(&asked.timer);
  asked.done(std::move(memory));
}

void AllocatorLink::OnExit(const os::ExitStatus& status) {
  loop_->Unwatch(&socket_watch_);
  os::CloseElsewhere(std::move(socket_));
  output_.Finish();
  Log(LogLevel::kError, "broker", "allocator ended; the next request starts another",
      {{"how", status.Describe()}});
  Answer(Ended());
  AskNext();
}

void AllocatorLink::Kill(const std::string& why) {
  Log(LogLevel::kError, "broker", "ending the allocator", {{"reason", why}});
  loop_->Unwatch(&socket_watch_);
  process_.KillGroup();  // OnExit follows.
}

void AllocatorLink::Stop() {
  thread_.Assert();
  exit_watch_.Stop();
  loop_->Unwatch(&socket_watch_);
  KillAndReap(&process_, "allocator");
  os::CloseElsewhere(std::move(socket_));
  output_.Finish();
  const absl::Status stopping = absl::UnavailableError("the daemon is stopping");
  Answer(stopping);
  while (!waiting_.empty()) waiting_.Pop().done(stopping);
}

}  // namespace sluice::broker
