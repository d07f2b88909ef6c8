// SPDX-License-Identifier: Apache-2.0
//
// sluice-allocator: makes memory for the broker, one request after the other, on descriptor 3. It
// may load graphics drivers, which the broker must not, and reaches of the host's files what those
// need (--confine-files, --readable: as a worker's). Ends at end of file there: with the broker,
// or when the broker has had enough of it.

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/base/log.h"
#include "broker/os/command_line.h"
#include "broker/os/local_socket.h"
#include "daemon/allocator/memory_maker.h"
#include "daemon/helpers/confined_calls.h"
#include "daemon/helpers/helper_files.h"
#include "daemon/helpers/helper_process.h"
#include "daemon/helpers/own_namespaces.h"
#include "proto/resource_messages.h"
#include "proto/status_macros.h"

namespace sluice::allocator {
namespace {

constexpr int kSocketFd = 3;

int ErrnoOf(const absl::Status& status) {
  if (absl::IsUnimplemented(status) || absl::IsNotFound(status)) return EOPNOTSUPP;
  if (absl::IsInvalidArgument(status)) return EINVAL;
  return ENOMEM;
}

absl::Status AnswerVulkan(uint64_t request_id, const MadeMemory& memory) {
  auto answer = wire::MakeMessage<wire::VulkanAllocated>();
  answer.request_id = request_id;
  answer.allocation_bytes = memory.allocation_bytes;
  answer.map_offset = memory.map_offset.value_or(0);
  answer.mappable = memory.map_offset.has_value() ? 1 : 0;
  std::memcpy(answer.device_uuid, memory.device_uuid.data(), sizeof(answer.device_uuid));
  std::memcpy(answer.driver_uuid, memory.driver_uuid.data(), sizeof(answer.driver_uuid));
  const int fd = memory.fds[0].get();
  return os::SendMessage(kSocketFd, &answer, sizeof(answer), &fd, 1);
}

absl::Status Answer(uint64_t request_id, const absl::StatusOr<MadeMemory>& memory) {
  auto answer = wire::MakeMessage<wire::MemoryAllocated>();
  answer.request_id = request_id;
  std::vector<int> fds;
  if (memory.ok()) {
    for (const os::UniqueFd& fd : memory->fds) fds.push_back(fd.get());
    answer.descriptor_count = static_cast<uint32_t>(fds.size());
    answer.allocation_bytes = memory->allocation_bytes;
    std::memcpy(answer.device_uuid, memory->device_uuid.data(), sizeof(answer.device_uuid));
  } else {
    answer.status = ErrnoOf(memory.status());
    wire::SetString(answer.message, std::string(memory.status().message()));
  }
  return os::SendMessage(kSocketFd, &answer, sizeof(answer), fds.data(),
                         static_cast<int>(fds.size()));
}

// Sets the log's level; the rest is what confines this process.
absl::Status TakeArguments(int argc, char** argv) {
  constexpr std::string_view kLevelFlag = "--log-level=";
  constexpr std::string_view kReadableFlag = "--readable=";
  constexpr std::string_view kCallsFlag = "--system-calls=";
  bool confine = true;
  bool namespaces = false;
  bool private_root = false;
  os::CallRule rule = os::CallRule::kListed;
  std::vector<std::string> readable;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with(kLevelFlag)) {
      if (const auto level = ParseLogLevel(argument.substr(kLevelFlag.size()))) SetLogLevel(*level);
    } else if (argument.starts_with(kReadableFlag)) {
      readable.emplace_back(argument.substr(kReadableFlag.size()));
    } else if (argument.starts_with(kCallsFlag)) {
      rule = os::ParseCallRule(argument.substr(kCallsFlag.size())).value_or(rule);
    } else if (argument == "--confine-files=0") {
      confine = false;
    } else if (argument == "--namespaces=1") {
      namespaces = true;
    } else if (argument == "--private-root=1") {
      private_root = true;
    }
  }
  if (namespaces) RETURN_IF_ERROR(os::EnterNamespaces(os::Network::kNone));
  // It has memory of every tenant's. After the namespaces, which come by its own files in /proc.
  os::HideFromOthers();
  os::HideThreadsFromOthers();
  if (confine) RETURN_IF_ERROR(os::ConfineAllocatorFiles(readable, private_root));
  RETURN_IF_ERROR(os::GiveUpCapabilities());
  return os::ConfineCalls(os::Helper::kAllocator, rule);
}

int Main(int argc, char** argv) {
  if (const absl::Status taken = TakeArguments(argc, argv); !taken.ok()) {
    Log(LogLevel::kError, "allocator", "ending", {{"reason", taken.ToString()}});
    return 1;
  }
  const std::unique_ptr<MemoryMaker> maker = MemoryMaker::Create();
  while (true) {
    char packet[wire::kMaxBrokerMessageBytes];
    const absl::StatusOr<size_t> size =
        os::ReceiveMessage(kSocketFd, packet, sizeof(packet), nullptr, 0);
    if (size.ok() && *size == 0) return 0;
    wire::AllocateMemory request = {};
    wire::AllocateTexture texture = {};
    absl::Status done = size.status();
    if (done.ok() && wire::ParseMessage(packet, *size, &request)) {
      const auto backing = static_cast<wire::ResourceBacking>(request.backing);
      const absl::StatusOr<MadeMemory> made = maker->Make(backing, request.size_bytes);
      done = made.ok() && backing == wire::ResourceBacking::kVulkan
                 ? AnswerVulkan(request.request_id, *made)
                 : Answer(request.request_id, made);
    } else if (done.ok() && wire::ParseMessage(packet, *size, &texture)) {
      done = Answer(texture.request_id, maker->MakeTexture(texture));
    } else if (done.ok()) {
      done = absl::InvalidArgumentError("a message that asks for nothing");
    }
    if (done.ok()) continue;
    Log(LogLevel::kError, "allocator", "ending", {{"reason", done.ToString()}});
    return 1;
  }
}

}  // namespace
}  // namespace sluice::allocator

int main(int argc, char** argv) {
  sluice::os::TakeCommandLine(&argc, &argv);
  return sluice::allocator::Main(argc, argv);
}
