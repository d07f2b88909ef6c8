// SPDX-License-Identifier: Apache-2.0
#include "broker/os/sandbox.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <iterator>

namespace sluice::os {
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

#if defined(__x86_64__)
constexpr uint32_t kOwnCalls = AUDIT_ARCH_X86_64;
constexpr uint32_t kFirstForeignCall = 0x40000000;  // Numbers of x32.
#elif defined(__aarch64__)
constexpr uint32_t kOwnCalls = AUDIT_ARCH_AARCH64;
constexpr uint32_t kFirstForeignCall = ~0U;
#else
#error "which system calls does this processor have?"
#endif

constexpr uint32_t kClone3 = 435;  // On every architecture.

// The filter is inherited, and cannot be removed. System calls of 32-bit programs have other
// numbers, so all of them are refused. So are children for its parent (CLONE_PARENT), which would
// not know of them: they would stay zombies. A filter cannot read clone3's flags, which are in
// memory: clone3 is reported as missing, and libraries use clone instead.
SandboxFailure StayInSession() {
  constexpr uint32_t kRefuse = SECCOMP_RET_ERRNO | EPERM;
  constexpr uint32_t kUnknown = SECCOMP_RET_ERRNO | ENOSYS;
  const sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kOwnCalls, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, kUnknown),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kFirstForeignCall, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, kUnknown),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kClone3, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, kUnknown),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setsid, 4, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setpgid, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),  // Its lower half.
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_PARENT, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, kRefuse),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {std::size(filter), const_cast<sock_filter*>(filter)};
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0)
    return {"seccomp (a kernel with its filters is needed)", errno};
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
  // Lets a session that gave way to others (daemon/worker/queues/queue_hints.h) come back to nice
  // 0, and no further. A broker may lack the right to allow it: then the hint has no effect.
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
  // Late: it also forbids what the steps above need on some systems.
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return {"prctl(PR_SET_NO_NEW_PRIVS)", errno};
  return options.stays_in_session ? StayInSession() : SandboxFailure();
}

}  // namespace sluice::os
