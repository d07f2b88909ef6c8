// SPDX-License-Identifier: Apache-2.0
#include "daemon/helpers/confined_calls.h"

#include <linux/kcmp.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "platform_linux/helpers/call_lists.h"

namespace sluice::os {
namespace {

constexpr uint64_t kNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                 CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
// Children of the broker's (CLONE_PARENT) and traced ones are refused, too.
constexpr uint64_t kRefusedClones = kNamespaces | CLONE_PARENT | CLONE_PTRACE;
constexpr uint64_t kThread = CLONE_VM | CLONE_THREAD;
constexpr uint64_t kSocketType = 0xf;  // Above it are SOCK_CLOEXEC and SOCK_NONBLOCK.

// A program's calls about itself.
constexpr int kOwnPrctls[] = {
    PR_SET_NAME,       PR_GET_NAME,       PR_SET_PDEATHSIG,    PR_GET_PDEATHSIG,    PR_GET_DUMPABLE,
    PR_SET_DUMPABLE,   PR_CAPBSET_READ,   PR_GET_NO_NEW_PRIVS, PR_SET_NO_NEW_PRIVS, PR_GET_SECCOMP,
    PR_SET_TIMERSLACK, PR_GET_TIMERSLACK, PR_SET_THP_DISABLE,  PR_GET_THP_DISABLE,  PR_GET_TSC,
    PR_GET_KEEPCAPS,   0x53564d41 /* PR_SET_VMA: names of memory */};

class Filter {
 public:
  explicit Filter(uint32_t otherwise, CallRule rule)
      : rule_(rule), context_(seccomp_init(Of(otherwise)), &seccomp_release) {}

  void Add(uint32_t action, const char* name, std::vector<scmp_arg_cmp> arguments = {}) {
    named_.insert(name);
    const int number = seccomp_syscall_resolve_name(name);
    if (number == __NR_SCMP_ERROR || context_ == nullptr || failed_ != 0) return;
    const int result =
        seccomp_rule_add_array(context_.get(), Of(action), number,
                               static_cast<unsigned>(arguments.size()), arguments.data());
    // A negative number: a call that this processor does not have. -EEXIST, -EACCES: an allowed or
    // default call needs no rule.
    if (result == 0 || result == -EEXIST || result == -EACCES || number < 0) return;
    failed_ = -result;
    where_ = name;
  }
  void Allow(const char* name, std::vector<scmp_arg_cmp> arguments = {}) {
    Add(SCMP_ACT_ALLOW, name, std::move(arguments));
  }
  template <size_t N>
  void AddAll(uint32_t action, const char* const (&names)[N]) {
    for (const char* const name : names) Add(action, name);
  }

  const std::set<std::string>& named() const { return named_; }

  absl::Status Load(bool all_threads) {
    if (context_ == nullptr) return absl::InternalError("seccomp_init");
    const auto set = [this](scmp_filter_attr attribute, uint32_t value) {
      if (failed_ == 0) failed_ = -seccomp_attr_set(context_.get(), attribute, value);
    };
    // 32-bit programs have no system calls (sandbox.cc), and are not killed for looking.
    set(SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
    set(SCMP_FLTATR_CTL_OPTIMIZE, 2);  // A tree: a dozen comparisons in place of hundreds.
    set(SCMP_FLTATR_CTL_TSYNC, all_threads ? 1 : 0);
    if (failed_ == 0) failed_ = -seccomp_load(context_.get());
    if (failed_ == 0) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("confining system calls", *where_ != '\0' ? " (" : "",
                                            where_, *where_ != '\0' ? ")" : "", ": ",
                                            std::strerror(failed_)));
  }

 private:
  // Logs refused calls in the kernel's log, and allows them, if the rule says so.
  uint32_t Of(uint32_t action) const {
    return rule_ == CallRule::kLogged && action != SCMP_ACT_ALLOW ? SCMP_ACT_LOG : action;
  }

  const CallRule rule_;
  const std::unique_ptr<std::remove_pointer_t<scmp_filter_ctx>, void (*)(scmp_filter_ctx)> context_;
  std::set<std::string> named_;
  int failed_ = 0;
  const char* where_ = "";
};

scmp_arg_cmp Has(unsigned index, uint64_t mask, uint64_t value) {
  return SCMP_CMP(index, SCMP_CMP_MASKED_EQ, mask, value);
}
// For int arguments: the upper half of the register is undefined.
scmp_arg_cmp IsInt(unsigned index, int value) {
  return Has(index, 0xffffffff, static_cast<uint32_t>(value));
}

// Calls about the process itself only: by 0, or by its own number, which processes that it starts
// do not have.
void AllowOnItself(Filter* filter) {
  const int own = static_cast<int>(::getpid());
  for (const char* const name : {"kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"})
    filter->Allow(name, {IsInt(0, own)});
  for (const char* const name : {"prlimit64", "move_pages"}) {
    filter->Allow(name, {IsInt(0, 0)});
    filter->Allow(name, {IsInt(0, own)});
  }
  // Graphics drivers compare two of their own descriptors.
  filter->Allow("kcmp", {IsInt(0, own), IsInt(1, own), IsInt(2, KCMP_FILE)});
  filter->Allow("personality", {IsInt(0, -1)});  // Only reads it.
  for (const int option : kOwnPrctls) filter->Allow("prctl", {IsInt(0, option)});
}

void AllowIoctls(Filter* filter, bool devices) {
  for (const uint64_t number : kPlainIoctls) filter->Allow("ioctl", {Has(1, 0xffffffff, number)});
  if (!devices) return;
  for (const uint64_t kind : kDeviceKinds) filter->Allow("ioctl", {Has(1, kIoctlKind, kind << 8)});
}

void AllowCommon(Filter* filter) {
  filter->AddAll(SCMP_ACT_ALLOW, kProcessCalls);
  filter->AddAll(SCMP_ACT_ALLOW, kFileCalls);
  AllowOnItself(filter);
  // Refuses MSG_FASTOPEN, which connects.
  for (const auto& [name, index] : {std::pair("sendto", 3), std::pair("sendmsg", 2)})
    filter->Allow(name, {Has(static_cast<unsigned>(index), MSG_FASTOPEN, 0)});
}

void AllowWorker(Filter* filter) {
  filter->AddAll(SCMP_ACT_ALLOW, kCacheCalls);
  filter->AddAll(SCMP_ACT_ALLOW, kCompilerCalls);
  filter->Allow("clone", {Has(0, kRefusedClones, 0)});
  AllowIoctls(filter, true);
}

// Drivers without compilers of their own: threads, and no other processes.
void AllowAllocator(Filter* filter) {
  filter->Allow("clone", {Has(0, kRefusedClones | kThread, kThread)});
  AllowIoctls(filter, true);
}

// TCP and no other protocol that looks like it (MPTCP, which landlock does not know), and UDP for
// questions to name servers.
void AllowGateway(Filter* filter) {
  filter->AddAll(SCMP_ACT_ALLOW, kServerCalls);
  for (const int family : {AF_INET, AF_INET6}) {
    for (const auto& [type, protocol] : {std::pair<int, int>(SOCK_STREAM, IPPROTO_TCP),
                                         std::pair<int, int>(SOCK_DGRAM, IPPROTO_UDP)}) {
      for (const int given : {0, protocol}) {
        filter->Allow("socket", {IsInt(0, family), Has(1, kSocketType, static_cast<uint64_t>(type)),
                                 IsInt(2, given)});
      }
    }
  }
  // A new pair reaches nobody else: one end is gRPC's.
  filter->Allow("socketpair", {IsInt(0, AF_UNIX), Has(1, kSocketType, SOCK_STREAM)});
  filter->Allow("sendmmsg", {Has(3, MSG_FASTOPEN, 0)});
  filter->Allow("clone", {Has(0, kRefusedClones | kThread, kThread)});
  AllowIoctls(filter, false);
}

}  // namespace

absl::Status ConfineCalls(Helper helper, CallRule rule) {
  if (rule == CallRule::kAny) return absl::OkStatus();
  Filter filter(SCMP_ACT_ERRNO(EPERM), rule);
  AllowCommon(&filter);
  switch (helper) {
    case Helper::kWorker:
      AllowWorker(&filter);
      break;
    case Helper::kAllocator:
      AllowAllocator(&filter);
      break;
    case Helper::kGateway:
      AllowGateway(&filter);
      break;
  }
  // If two filters refuse a call, the one that was installed last decides how. So the filter that
  // knows all calls comes last. The gateway installs one more afterwards.
  filter.Allow("seccomp");
  if (absl::Status loaded = filter.Load(false); !loaded.ok() || rule == CallRule::kLogged)
    return loaded;
  Filter known(SCMP_ACT_ERRNO(ENOSYS), rule);
  for (const std::string& name : filter.named()) {
    if (name != "seccomp" || helper == Helper::kGateway) known.Allow(name.c_str());
  }
  known.AddAll(SCMP_ACT_ALLOW, kRefusedCalls);
  known.AddAll(SCMP_ACT_KILL_PROCESS, kDeadlyCalls);
  return known.Load(false);
}

absl::Status MakeNoMoreSockets(CallRule rule) {
  if (rule == CallRule::kAny) return absl::OkStatus();
  Filter filter(SCMP_ACT_ALLOW, rule);
  for (const char* const name : {"socket", "bind", "connect", "listen", "sendmmsg"})
    filter.Add(SCMP_ACT_ERRNO(EPERM), name);
  return filter.Load(true);
}

}  // namespace sluice::os
