// SPDX-License-Identifier: Apache-2.0
//
// The broker's side of the allocator process, which makes the memory of daemon-owned resources: it
// may load graphics drivers, so it is unprivileged, apart, and replaceable. Started when memory is
// first asked for. If it ends, the request that it had fails, and the next one starts another.
// Memory that it has made lives on in the broker's descriptors. It works at one request at a time.
// The identities that ask take turns, so that none waits for all that another one wants.
//
// Owner: ResourceHub. Loop thread only. The allocator's answers are checked like any peer's.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/children/child_output.h"
#include "broker/children/child_watch.h"
#include "broker/event_loop.h"
#include "broker/fair_queue.h"
#include "broker/os/close_elsewhere.h"
#include "broker/os/process.h"
#include "broker/os/scoped_handle.h"
#include "broker/os/thread_checker.h"
#include "broker/resources/registry.h"
#include "proto/resource_messages.h"

namespace sluice::broker {

struct AllocatedMemory {
  os::StrangersFds fds;
  uint64_t allocation_bytes = 0;  // The size that an importer of an opaque handle names.
  std::array<uint8_t, 16> device_uuid = {};
  std::array<uint8_t, 16> driver_uuid = {};  // Of Vulkan's.
  std::optional<uint64_t> map_offset;  // Of Vulkan's, if it can be mapped; nobody has checked.
};

class AllocatorLink {
 public:
  using Done = std::function<void(absl::StatusOr<AllocatedMemory>)>;

  explicit AllocatorLink(EventLoop* loop)
      : loop_(loop), output_(loop, "allocator"), exit_watch_(loop) {}
  ~AllocatorLink() { Stop(); }

  // The user that the next allocator runs as, and what of the host's files it may read
  // (WorkerLauncher::confinement_arguments).
  void Configure(std::optional<os::UserIdentity> user,
                 std::vector<std::string> confinement_arguments) {
    user_ = std::move(user);
    confinement_arguments_ = std::move(confinement_arguments);
  }

  // For `identity`. `done` is called once, possibly before this returns.
  void Allocate(const std::string& identity, wire::ResourceBacking backing,
                const ResourceShape& shape, Done done);

  bool Is(pid_t pid) const { return process_.valid() && process_.pid() == pid; }

  // Ends the process; whatever waits fails.
  void Stop();

  bool running() const { return process_.valid(); }

 private:
  struct Request {
    wire::ResourceBacking backing;
    ResourceShape shape;
    Done done;
  };
  struct Asked {
    uint64_t request_id;
    wire::ResourceBacking backing;
    Done done;
    EventLoop::TimerId timer;
  };

  void AskNext();
  absl::Status EnsureRunning();
  absl::Status Ask(wire::ResourceBacking backing, const ResourceShape& shape, uint64_t request_id);
  absl::Status Spawn();
  void OnExit(const os::ExitStatus& status);
  void OnReadable();
  // False: it breaks the protocol.
  bool HandleAnswer(const wire::MemoryAllocated& answer, os::StrangersFds fds);
  bool HandleVulkan(const wire::VulkanAllocated& answer, os::StrangersFds fds);
  bool Finish(uint64_t request_id, absl::StatusOr<AllocatedMemory> memory);
  void Answer(absl::StatusOr<AllocatedMemory> memory);
  void Kill(const std::string& why);

  os::ThreadChecker thread_;
  EventLoop* const loop_;
  std::optional<os::UserIdentity> user_;
  std::vector<std::string> confinement_arguments_;
  os::ChildProcess process_;
  ChildOutput output_;
  os::UniqueFd socket_;
  ChildWatch exit_watch_;
  EventLoop::WatchId socket_watch_ = 0;
  int64_t started_ms_ = 0;
  uint64_t next_request_ = 1;
  std::optional<Asked> asked_;  // The request that the allocator works at.
  FairQueue<Request> waiting_;
};

}  // namespace sluice::broker
