// SPDX-License-Identifier: Apache-2.0
//
// Confines a child of the broker. Workers run other people's kernels, on a CPU device as native
// code: they must not be able to gain rights, and must lose the broker's.
//
// A child gets no new privileges (set-uid programs and file capabilities have no effect), an
// unprivileged user if the broker is root, and no core dumps (they hold tenants' data). It has a
// session of its own, so that the terminal's signals do not reach it, and a bound for its memory if
// the operator sets one. A worker and what it starts cannot leave that session and their process
// group (seccomp): the broker knows them by the first, and ends them by the second. Before it loads
// a driver, a worker gives up other files (file_access.h) and system calls
// (daemon/helpers/confined_calls.h) by itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "broker/os/types.h"

namespace sluice::os {

// Which system calls the broker's helpers can make (daemon/helpers/confined_calls.h).
enum class CallRule {
  kListed,  // Those of their lists.
  kLogged,  // Any; the system's log has what is on no list. To find out what a driver needs.
  kAny,
};

// "listed", "logged", "any": as a configuration and a helper's flag say it.
std::optional<CallRule> ParseCallRule(std::string_view name);
std::string_view CallRuleName(CallRule rule);

struct UserIdentity {
  std::string name;
  std::string home;
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // Supplementary: a GPU's device node belongs to "render" or "video".
};

struct SandboxOptions {
  std::optional<UserIdentity> user;  // Become this user; without it, stay.
  bool new_session = true;
  // Neither it nor what it starts can leave session and process group, or make children for this
  // process: setsid, setpgid and CLONE_PARENT fail with EPERM, and there is no clone3. On Windows
  // that is how every child is (its job).
  bool stays_in_session = false;
  // Memory of its own that it may have: heaps, stacks, what compilers take; not what it shares, and
  // not address space that is only reserved, of which GPU drivers take terabytes (RLIMIT_DATA, not
  // RLIMIT_AS). 0 = no limit.
  uint64_t data_bytes = 0;
  // Sent to the child when the thread that started it ends; 0 = none, which is what workers get.
  int parent_death_signal = 0;
};

// The step that failed, by name, with its errno; null if all is well.
struct SandboxFailure {
  const char* what = nullptr;
  int error_number = 0;
};

// Called in the child between fork and exec: makes system calls only, allocates nothing, takes no
// lock.
SandboxFailure ApplySandbox(const SandboxOptions& options);

}  // namespace sluice::os
