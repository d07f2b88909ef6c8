// SPDX-License-Identifier: Apache-2.0
//
// Stands in for sluice-allocator in a test: the size that is asked for says how it lies. Anything
// that is not listed is answered as it should be.
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "broker/os/lent_memory.h"
#include "broker/os/local_socket.h"
#include "broker/os/threads.h"
#include "broker/resources/registry.h"
#include "proto/resource_messages.h"
#include "tests/unit/resources/lying_allocator.h"

namespace sluice::broker {
namespace {

constexpr int kSocketFd = 3;

absl::Status Say(const wire::MemoryAllocated& answer, const std::vector<int>& fds) {
  return os::SendMessage(kSocketFd, &answer, sizeof(answer), fds.data(),
                         static_cast<int>(fds.size()));
}

absl::Status SayVulkan(const wire::AllocateMemory& request, uint64_t map_offset, uint32_t mappable,
                       int fd) {
  auto answer = wire::MakeMessage<wire::VulkanAllocated>();
  answer.request_id = request.request_id;
  answer.allocation_bytes = request.size_bytes;
  answer.map_offset = map_offset;
  answer.mappable = mappable;
  std::fill(std::begin(answer.device_uuid), std::end(answer.device_uuid), uint8_t{3});
  std::fill(std::begin(answer.driver_uuid), std::end(answer.driver_uuid), uint8_t{4});
  return os::SendMessage(kSocketFd, &answer, sizeof(answer), &fd, 1);
}

// A TCP socket whose last close takes kLingerS, or as long as this process lives.
os::UniqueFd Lingering() {
  const os::UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const auto raw = reinterpret_cast<sockaddr*>(&address);
  os::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::bind(listener.get(), raw, size) != 0 || ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), raw, &size) != 0 || ::connect(socket.get(), raw, size) != 0) {
    return os::UniqueFd();
  }
  static std::vector<os::UniqueFd>& readers = *new std::vector<os::UniqueFd>;
  readers.emplace_back(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const std::string some(64 * 1024, 'x');
  while (::send(socket.get(), some.data(), some.size(), MSG_DONTWAIT) > 0) {
  }
  const linger long_time = {1, kLingerS};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &long_time, sizeof(long_time));
  return socket;
}

// Closed by a thread of its own: whoever closes it last waits, which is to be the broker, but may
// be this process. Other requests must not wait for that.
template <typename Send>
absl::Status SendLingering(Send send) {
  const auto socket = std::make_shared<os::UniqueFd>(Lingering());
  const absl::Status sent = send(socket->get());
  os::StartDetached([socket] { socket->reset(); });
  return sent;
}

absl::Status Lie(const wire::AllocateMemory& request) {
  auto answer = wire::MakeMessage<wire::MemoryAllocated>();
  answer.request_id = request.request_id;
  answer.descriptor_count = 1;
  const uint64_t right_size = std::max<uint64_t>(request.size_bytes, 4096);
  const absl::StatusOr<os::UniqueFd> good = os::CreateLentMemory("lie", right_size);
  if (!good.ok()) return good.status();
  const int fd = good->get();
  switch (static_cast<AllocatorLie>(request.size_bytes)) {
    case AllocatorLie::kNoDescriptor:
      answer.descriptor_count = 0;
      return Say(answer, {});
    case AllocatorLie::kWrongCount:
      answer.descriptor_count = 2;
      return Say(answer, {fd});
    case AllocatorLie::kMemoryWithAnError:
      answer.status = ENOMEM;
      return Say(answer, {fd});
    case AllocatorLie::kTooManyDescriptors:
      answer.descriptor_count = wire::kMaxResourceDescriptors + 4;
      return Say(answer, std::vector<int>(wire::kMaxResourceDescriptors + 4, fd));
    case AllocatorLie::kOtherRequest:
      answer.request_id += 1;
      return Say(answer, {fd});
    case AllocatorLie::kEndlessMessage:
      std::memset(answer.message, 'x', sizeof(answer.message));
      return Say(answer, {fd});
    case AllocatorLie::kShortMessage:
      return os::SendMessage(kSocketFd, &answer, sizeof(answer) / 2, &fd, 1);
    case AllocatorLie::kTwice: {
      const absl::Status first = Say(answer, {fd});
      return first.ok() ? Say(answer, {fd}) : first;
    }
    case AllocatorLie::kEnds:
      ::_exit(0);
    case AllocatorLie::kPipe: {
      int ends[2];
      if (::pipe(ends) != 0) return absl::ErrnoToStatus(errno, "pipe");
      const os::UniqueFd read(ends[0]), write(ends[1]);
      return Say(answer, {read.get()});
    }
    case AllocatorLie::kSmaller: {
      const absl::StatusOr<os::UniqueFd> small = os::CreateLentMemory("lie", 1);
      return small.ok() ? Say(answer, {small->get()}) : small.status();
    }
    case AllocatorLie::kLingers:
      return SendLingering([&](int socket) { return Say(answer, {socket}); });
    case AllocatorLie::kUnsealed: {
      const os::UniqueFd unsealed(::memfd_create("lie", MFD_CLOEXEC | MFD_ALLOW_SEALING));
      if (::ftruncate(unsealed.get(), 4096) != 0) return absl::ErrnoToStatus(errno, "ftruncate");
      return Say(answer, {unsealed.get()});
    }
    case AllocatorLie::kVulkanPastEnd:
      return SayVulkan(request, right_size, 1, fd);
    case AllocatorLie::kVulkanWraps:
      return SayVulkan(request, ~uint64_t{0} - request.size_bytes + 2, 1, fd);
    case AllocatorLie::kVulkanLingers:
      return SendLingering([&](int socket) { return SayVulkan(request, 0, 0, socket); });
    case AllocatorLie::kVulkanUnsealed: {
      const os::UniqueFd unsealed(::memfd_create("lie", MFD_CLOEXEC | MFD_ALLOW_SEALING));
      if (::ftruncate(unsealed.get(), 8192) != 0) return absl::ErrnoToStatus(errno, "ftruncate");
      return SayVulkan(request, 64, 1, unsealed.get());
    }
    case AllocatorLie::kVulkanUnasked:
      return SayVulkan(request, 0, 1, fd);
    case AllocatorLie::kForgesLog:
      std::fputs("2026-11-22T00:00:00.000Z error broker msg=forged\n", stderr);
      break;
    case AllocatorLie::kNone:
      break;
  }
  if (request.backing == static_cast<uint32_t>(wire::ResourceBacking::kVulkan)) {
    // At byte 64 if it can be mapped: memory of one page more than was asked for.
    const absl::StatusOr<os::UniqueFd> more =
        os::CreateLentMemory("lie", request.size_bytes + 4096);
    if (!more.ok()) return more.status();
    return SayVulkan(request, 64, request.size_bytes % 2 == 0 ? 1 : 0, more->get());
  }
  return Say(answer, {fd});
}

// As an allocator on Windows answers: the one texture that the test asks for, two layers of 64x32
// RGBA8. A texture of width 1 comes without its fence.
absl::Status AnswerTexture(const wire::AllocateTexture& request) {
  auto answer = wire::MakeMessage<wire::MemoryAllocated>();
  answer.request_id = request.request_id;
  const bool whole = request.width == 64 && request.height == 32 && request.depth == 1 &&
                     request.array_layers == 2 && request.channel_order == 0x10B5 &&
                     request.channel_type == 0x10D2 && request.reserved == 0 &&
                     request.size_bytes == 64 * 32 * 4 * 2;
  if (!whole && request.width != 1) {
    answer.status = EINVAL;
    return Say(answer, {});
  }
  const absl::StatusOr<os::UniqueFd> resource = os::CreateLentMemory("texture", 4096);
  const absl::StatusOr<os::UniqueFd> fence = os::CreateLentMemory("fence", 4096);
  if (!resource.ok() || !fence.ok()) return absl::InternalError("no memory");
  std::vector<int> fds = {resource->get()};
  if (whole) fds.push_back(fence->get());
  answer.descriptor_count = static_cast<uint32_t>(fds.size());
  answer.device_uuid[0] = 7;
  return Say(answer, fds);
}

int Main() {
  while (true) {
    char packet[wire::kMaxBrokerMessageBytes];
    const auto size = os::ReceiveMessage(kSocketFd, packet, sizeof(packet), nullptr, 0);
    wire::AllocateMemory request = {};
    wire::AllocateTexture texture = {};
    if (!size.ok() || *size == 0) return 0;
    if (wire::ParseMessage(packet, *size, &texture)) {
      if (!AnswerTexture(texture).ok()) return 1;
      continue;
    }
    if (!wire::ParseMessage(packet, *size, &request)) return 0;
    if (!Lie(request).ok()) return 1;
  }
}

}  // namespace
}  // namespace sluice::broker

int main() { return sluice::broker::Main(); }
