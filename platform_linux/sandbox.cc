// SPDX-License-Identifier: Apache-2.0
#include "broker/os/sandbox.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace sluice {
namespace {

// The raw system calls: glibc's wrappers signal "all threads" of a process that, after fork, has
// one, and take locks to do so.
SandboxFailure BecomeUser(const UserIdentity& user) {
  if (::syscall(SYS_setgroups, user.groups.size(), user.groups.data()) != 0) {
    return {"setgroups", errno};
  }
  if (::syscall(SYS_setresgid, user.gid, user.gid, user.gid) != 0) return {"setresgid", errno};
  if (::syscall(SYS_setresuid, user.uid, user.uid, user.uid) != 0) return {"setresuid", errno};
  return {};
}

}  // namespace

SandboxFailure ApplySandbox(const SandboxOptions& options) {
  if (options.new_session && ::setsid() < 0) return {"setsid", errno};
  const rlimit no_core = {0, 0};
  if (::setrlimit(RLIMIT_CORE, &no_core) != 0) return {"setrlimit(RLIMIT_CORE)", errno};
  if (options.data_bytes != 0) {
    const rlimit data = {options.data_bytes, options.data_bytes};
    if (::setrlimit(RLIMIT_DATA, &data) != 0) return {"setrlimit(RLIMIT_DATA)", errno};
  }
  // So that a session that gave way to others (daemon/queue_hints.h) may come back to nice 0, and
  // no further. A broker without the right to allow it does not: the hint is without effect then.
  const rlimit nice_zero = {20, 20};
  static_cast<void>(::setrlimit(RLIMIT_NICE, &nice_zero));
  if (options.user.has_value()) {
    const SandboxFailure failure = BecomeUser(*options.user);
    if (failure.what != nullptr) return failure;
  }
  // After the change of user, which would clear it.
  if (options.parent_death_signal != 0 &&
      ::prctl(PR_SET_PDEATHSIG, options.parent_death_signal, 0, 0, 0) != 0) {
    return {"prctl(PR_SET_PDEATHSIG)", errno};
  }
  // Last: it also forbids what the steps above need on some systems.
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return {"prctl(PR_SET_NO_NEW_PRIVS)", errno};
  return {};
}

}  // namespace sluice
