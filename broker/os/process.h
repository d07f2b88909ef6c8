// SPDX-License-Identifier: Apache-2.0
//
// Starting, watching and ending the broker's children: workers, probes and the gateway. A child
// gets exactly the descriptors, arguments and environment that are listed here, and nothing by
// inheritance. Children are named by pidfd, never by a pid that may have been reused.
//
// A child outlives its parent: a broker that is killed must not take running sessions with it.
// Thread-safe; ChildProcess is thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/os/sandbox.h"
#include "broker/os/scoped_handle.h"
#include "broker/os/types.h"

namespace sluice::os {

// A child's output: to the parent's stderr, if it has one; nowhere (Linux only).
inline constexpr int kParentsStderr = -1;
inline constexpr int kNoOutput = -2;

struct SpawnOptions {
  std::string path;                      // Of the executable.
  std::string argv0;                     // The child's argv[0]; empty: the path.
  std::vector<std::string> arguments;    // argv[1] and on.
  std::vector<std::string> environment;  // "NAME=value"; the child's whole environment.
  // (descriptor here, its number in the child); numbers are distinct and >= 3. stdin is empty: the
  // null device, or memory where there is none; stdout and stderr are `output`.
  std::vector<std::pair<int, int>> descriptors;
  // A pipe's reader may go first: such a child begins with SIGPIPE ignored.
  int output = kParentsStderr;
  // The folder of a control group of version 2 that it is born in (Linux only); else its parent's.
  int control_group = -1;
  SandboxOptions sandbox;
};

// How a process ended: its exit code, or the signal that killed it.
struct ExitStatus {
  int code = 0;
  int signal = 0;                // 0 = it exited by itself.
  std::string Describe() const;  // "exit code 3", "killed by signal 9 (Killed)"
};

class ChildProcess {
 public:
  ChildProcess() = default;
  ChildProcess(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

  pid_t pid() const { return pid_; }          // For logs.
  int pidfd() const { return pidfd_.get(); }  // Readable once the process has ended.
  bool valid() const { return pidfd_.valid(); }

  absl::Status Signal(int signal_number) const;

  // Kills it and what it started (compilers, linkers). Also for a child that has ended and is not
  // reaped yet, to kill its offspring.
  void KillGroup() const;

  // Reaps the child if it has ended; nothing if it still runs, or has ended while a debugger holds
  // on to it (its pidfd is readable then). After a result, invalid.
  std::optional<ExitStatus> TryReap();

  // Waits at most `timeout_ms` (-1 = for ever), then as TryReap.
  std::optional<ExitStatus> WaitAndReap(int timeout_ms);

 private:
  std::optional<ExitStatus> Reap(int options);

  pid_t pid_ = -1;
  UniqueFd pidfd_;
};

// The error names what failed in the child: the change of user, the exec, ... Once the child has
// changed its user, that user's processes may stop it before its exec: after 0.5 s it counts as
// started.
absl::StatusOr<ChildProcess> Spawn(const SpawnOptions& options);

// Starts a process that its parent does not see, for code in a stranger's process. Its end sends no
// SIGCHLD, and wait() does not find it, also in a container's process 1 and in a subreaper. The
// process ends when its descriptors tell it to. AwaitUnseen, with SpawnUnseen's result, returns
// when it has ended; call it once, or a zombie stays as long as this process. Linux only.
absl::StatusOr<pid_t> SpawnUnseen(const SpawnOptions& options);
void AwaitUnseen(pid_t number);

// The path of the running executable, and of Sluice's helper executable `name`: in
// ../libexec/sluice, else beside the running one (the build tree).
absl::StatusOr<std::string> OwnExecutablePath();
absl::StatusOr<std::string> FindHelperExecutable(const std::string& name);

// This process's environment, "NAME=value"; empty where EnvironmentVariable finds nothing
// (set-user-ID programs).
std::vector<std::string> OwnEnvironment();

// Memory of the whole machine; 0 if that is not known.
uint64_t MachineMemoryBytes();

// True if this process may become other users: root; on Windows the system's own account.
bool IsPrivileged();

// The numeric ids of a user of this machine, its supplementary groups included; of a group.
absl::StatusOr<UserIdentity> LookUpUser(const std::string& name);
absl::StatusOr<gid_t> LookUpGroup(const std::string& name);

}  // namespace sluice::os
