// SPDX-License-Identifier: Apache-2.0
#include "broker/os/process.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fstream>

#include "absl/strings/str_join.h"
#include "broker/base/check.h"
#include "platform_linux/above_standard.h"
#include "platform_linux/errno_status.h"
#include "platform_linux/keeper.h"
#include "platform_linux/system_call_numbers.h"
#include "proto/status_macros.h"

#ifndef P_PIDFD
#define P_PIDFD 3
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

namespace sluice::os {
namespace {

// Above every number a child asks for, so that moving descriptors never overwrites one.
constexpr int kFirstScratchFd = 64;
// How long to wait for the end of a child that failed and was killed.
constexpr int kFailedChildMs = 1'000;
// From its change of user to its exec, other processes of that user can stop and slow a child,
// while everybody may be waiting for its parent.
constexpr int kExecMs = 500;
constexpr int kStoppedLookMs = 5;

// The child's report to the parent: an error; or, without one, that it is about to change its user.
struct SpawnFailure {
  int error_number;
  char what[60];
};

[[noreturn]] void ReportAndExit(int report_fd, const char* what, int error_number) {
  SpawnFailure failure = {};
  failure.error_number = error_number;
  for (size_t i = 0; what[i] != '\0' && i + 1 < sizeof(failure.what); ++i) {
    failure.what[i] = what[i];
  }
  // Nothing can be done about a failure to report; the exit code says enough.
  [[maybe_unused]] const ssize_t written = ::write(report_fd, &failure, sizeof(failure));
  ::_exit(127);
}

// Everything the child needs, prepared before the fork: afterwards nothing may allocate.
struct ChildPlan {
  const SpawnOptions* options;
  std::vector<char*> argv;
  std::vector<char*> envp;
  int null_fd;
  int report_fd;
  int enter_group_fd = -1;  // The cgroup.procs of a group that it is not born in.
};

void ResetSignals() {
  // Ignored signals would be inherited through exec.
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// As dup2, and clears close-on-exec also if `fd` is `target`, where dup2 would do nothing.
int Place(int fd, int target) {
  return fd == target ? ::fcntl(fd, F_SETFD, 0) : ::dup2(fd, target);
}

// Between fork and exec, in a copy of a process that may have many threads: system calls only.
[[noreturn]] void RunChild(const ChildPlan& plan) {
  const SpawnOptions& options = *plan.options;
  ResetSignals();
  if (options.output >= 0) ::signal(SIGPIPE, SIG_IGN);
  constexpr char kMove[] = "fcntl(F_DUPFD) (is `ulimit -n` too low?)";
  const int report_fd = ::fcntl(plan.report_fd, F_DUPFD_CLOEXEC, kFirstScratchFd);
  if (report_fd < 0) ReportAndExit(plan.report_fd, kMove, errno);
  int moved[32];
  size_t count = 0;
  for (const auto& [source, target] : options.descriptors) {
    moved[count] = ::fcntl(source, F_DUPFD_CLOEXEC, kFirstScratchFd);
    if (moved[count] < 0) ReportAndExit(report_fd, kMove, errno);
    ++count;
  }
  if (plan.enter_group_fd >= 0 && ::write(plan.enter_group_fd, "0", 1) != 1)
    ReportAndExit(report_fd, "entering its control group", errno);
  int output = options.output;
  if (output == kParentsStderr) output = STDERR_FILENO;
  // A parent may have no stderr.
  if (output == kNoOutput || ::fcntl(output, F_GETFD) < 0) output = plan.null_fd;
  if (Place(output, STDERR_FILENO) < 0 || Place(STDERR_FILENO, STDOUT_FILENO) < 0 ||
      Place(plan.null_fd, STDIN_FILENO) < 0) {
    ReportAndExit(report_fd, "dup2", errno);
  }
  // Everything is closed at exec, but for what is placed below.
  if (::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) != 0) {
    ReportAndExit(report_fd, "close_range (Linux 5.11 or later is needed)", errno);
  }
  for (size_t i = 0; i < count; ++i) {
    if (::dup2(moved[i], options.descriptors[i].second) < 0) {
      ReportAndExit(report_fd, "dup2", errno);
    }
  }
  if (options.sandbox.user.has_value()) {
    const SpawnFailure none = {};
    [[maybe_unused]] const ssize_t written = ::write(report_fd, &none, sizeof(none));
  }
  const SandboxFailure failure = ApplySandbox(options.sandbox);
  if (failure.what != nullptr) ReportAndExit(report_fd, failure.what, failure.error_number);
  ::execve(options.path.c_str(), plan.argv.data(), plan.envp.data());
  ReportAndExit(report_fd, "exec", errno);
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 2);
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  return pointers;
}

bool IsStopped(int pidfd) {
  siginfo_t info = {};
  return ::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd), &info,
                  WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid != 0;
}

// False for a child that is stopped, or takes too long.
bool AwaitExec(int report_fd, int pidfd) {
  for (int waited_ms = 0; waited_ms < kExecMs; waited_ms += kStoppedLookMs) {
    pollfd entry = {report_fd, POLLIN, 0};
    if (::poll(&entry, 1, kStoppedLookMs) > 0) return true;
    if (IsStopped(pidfd)) return false;
  }
  return false;
}

// Reads the child's report: nothing comes if exec has closed the pipe. A child that is held up
// after its change of user counts as started. If it fails after all, it ends, as any program may.
absl::Status ReadReport(int fd, const std::string& path, int pidfd) {
  while (true) {
    SpawnFailure failure;
    ssize_t count;
    do {
      count = ::read(fd, &failure, sizeof(failure));
    } while (count < 0 && errno == EINTR);
    if (count == 0) return absl::OkStatus();
    if (count != sizeof(failure)) return absl::InternalError("child process failed before exec");
    if (failure.error_number != 0) {
      failure.what[sizeof(failure.what) - 1] = '\0';
      return ErrnoStatus(failure.error_number, absl::StrCat("starting ", path, ": ", failure.what));
    }
    if (!AwaitExec(fd, pidfd)) return absl::OkStatus();
  }
}

// fork with a pidfd, by the system call itself: glibc's fork runs handlers (gRPC registers some),
// which are meant for children that do not exec.
pid_t ForkWithPidfd(int* pidfd) {
  return static_cast<pid_t>(::syscall(SYS_clone, static_cast<unsigned long>(CLONE_PIDFD | SIGCHLD),
                                      0UL, pidfd, 0UL, 0UL));
}

// The same, into a control group, for which clone3 is needed. Where that is forbidden (a
// container's filter says that there is no such call), the child moves itself there first of all.
pid_t ForkIntoGroup(int group, int* pidfd) {
  clone_args arguments = {};
  arguments.flags = CLONE_PIDFD | CLONE_INTO_CGROUP;
  arguments.pidfd = reinterpret_cast<uint64_t>(pidfd);
  arguments.exit_signal = SIGCHLD;
  arguments.cgroup = static_cast<uint64_t>(group);
  return static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof(arguments)));
}

// Stands in for a child's missing input and output. A sandbox may have no /dev: there it is empty
// memory that is sealed against writing, so that writers get EPERM and no signal.
UniqueFd OpenNothing() {
  UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (null.valid()) return AboveStandard(std::move(null));
  UniqueFd empty(::memfd_create("sluice-nothing", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (empty.valid() &&
      ::fcntl(empty.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return UniqueFd();
  }
  return AboveStandard(std::move(empty));
}

// Calls `clone`. The child runs the plan; the caller gets the child's number.
template <typename Clone>
absl::StatusOr<pid_t> RunPlan(const SpawnOptions& options, UniqueFd* report_read, Clone&& clone) {
  SLUICE_CHECK(options.descriptors.size() <= 32);
  for (const auto& descriptor : options.descriptors) {
    SLUICE_CHECK(descriptor.second >= 3 && descriptor.second < kFirstScratchFd);
  }
  ChildPlan plan;
  plan.options = &options;
  plan.argv = Pointers(options.arguments);
  plan.argv.insert(
      plan.argv.begin(),
      const_cast<char*>(options.argv0.empty() ? options.path.c_str() : options.argv0.c_str()));
  plan.argv.push_back(nullptr);
  plan.envp = Pointers(options.environment);
  plan.envp.push_back(nullptr);
  const UniqueFd null_fd = OpenNothing();
  if (!null_fd.valid()) return ErrnoStatus(errno, "opening /dev/null, and memory in its place");
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe");
  *report_read = AboveStandard(UniqueFd(report[0]));
  const UniqueFd report_write = AboveStandard(UniqueFd(report[1]));
  if (!report_read->valid() || !report_write.valid()) return ErrnoStatus(errno, "pipe");
  plan.null_fd = null_fd.get();
  plan.report_fd = report_write.get();
  UniqueFd enter_group;
  if (options.control_group >= 0) {
    enter_group.reset(::openat(options.control_group, "cgroup.procs", O_WRONLY | O_CLOEXEC));
    enter_group = AboveStandard(std::move(enter_group));
    if (!enter_group.valid()) return ErrnoStatus(errno, "opening a control group's processes");
    plan.enter_group_fd = enter_group.get();
  }

  // Signals wait meanwhile, so that no handler of this process runs in the child.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = clone(&plan);
  if (pid == 0) RunChild(plan);
  const int fork_errno = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return ErrnoStatus(fork_errno, absl::StrCat("starting ", options.path, ": fork"));
  return pid;
}

// A child that sends no signal when it ends; only __WCLONE and __WALL find it until it runs exec.
pid_t ForkSilently() { return static_cast<pid_t>(::syscall(SYS_clone, 0UL, 0UL, 0UL, 0UL, 0UL)); }

}  // namespace

absl::StatusOr<ChildProcess> Spawn(const SpawnOptions& options) {
  int raw_pidfd = -1;
  UniqueFd report_read;
  const auto fork = [&](ChildPlan* plan) {
    if (options.control_group < 0) return ForkWithPidfd(&raw_pidfd);
    const int enter_group_fd = std::exchange(plan->enter_group_fd, -1);
    const pid_t born = ForkIntoGroup(options.control_group, &raw_pidfd);
    if (born >= 0 || (errno != ENOSYS && errno != EPERM && errno != EINVAL)) return born;
    plan->enter_group_fd = enter_group_fd;
    return ForkWithPidfd(&raw_pidfd);
  };
  ASSIGN_OR_RETURN(const pid_t pid, RunPlan(options, &report_read, fork));
  ChildProcess child(pid, UniqueFd(raw_pidfd));
  const absl::Status started = ReadReport(report_read.get(), options.path, child.pidfd());
  if (!started.ok()) {
    child.Signal(SIGKILL).IgnoreError();
    child.WaitAndReap(kFailedChildMs);
    return started;
  }
  return child;
}

absl::StatusOr<pid_t> SpawnUnseen(const SpawnOptions& options) {
  UniqueFd report_read;
  const KeeperPlan keeper_plan = PlanKeeper();
  const auto twice = [&keeper_plan](const ChildPlan* plan) {
    const pid_t keeper = ForkSilently();
    if (keeper != 0) return keeper;
    const pid_t child = ForkSilently();
    if (child < 0) ReportAndExit(plan->report_fd, "fork", errno);
    if (child > 0) Keep(keeper_plan, child);
    return pid_t{0};
  };
  SLUICE_CHECK(!options.sandbox.user.has_value());
  ASSIGN_OR_RETURN(const pid_t keeper, RunPlan(options, &report_read, twice));
  if (absl::Status started = ReadReport(report_read.get(), options.path, -1); !started.ok()) {
    AwaitUnseen(keeper);
    return started;
  }
  return keeper;
}

void AwaitUnseen(pid_t number) {
  siginfo_t info;
  while (::waitid(P_PID, static_cast<id_t>(number), &info, WEXITED | __WCLONE) != 0 &&
         errno == EINTR) {
  }
}

absl::Status ChildProcess::Signal(int signal_number) const {
  if (!valid()) return absl::FailedPreconditionError("no such process");
  if (::syscall(SYS_pidfd_send_signal, pidfd_.get(), signal_number, nullptr, 0U) != 0) {
    return ErrnoStatus(errno, "pidfd_send_signal");
  }
  return absl::OkStatus();
}

void ChildProcess::KillGroup() const {
  if (!valid()) return;
  Signal(SIGKILL).IgnoreError();
  // Safe by number: the pid of an unreaped child, which is its group's number too, is not used
  // again.
  ::kill(-pid_, SIGKILL);
}

std::optional<ExitStatus> ChildProcess::TryReap() { return Reap(WNOHANG); }

std::optional<ExitStatus> ChildProcess::Reap(int options) {
  if (!valid()) return std::nullopt;
  siginfo_t info = {};
  int result;
  do {
    result = ::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd_.get()), &info,
                      WEXITED | options);
  } while (result != 0 && errno == EINTR);
  if (result == 0 && info.si_pid == 0) return std::nullopt;  // It still runs.
  pidfd_.reset();
  ExitStatus status;
  if (result != 0) {
    status.code = -1;  // Reaped by someone else: how it ended is lost.
  } else if (info.si_code == CLD_EXITED) {
    status.code = info.si_status;
  } else {
    status.signal = info.si_status;
  }
  return status;
}

std::optional<ExitStatus> ChildProcess::WaitAndReap(int timeout_ms) {
  if (timeout_ms < 0) return Reap(0);
  if (!valid()) return std::nullopt;
  pollfd entry = {pidfd_.get(), POLLIN, 0};
  while (::poll(&entry, 1, timeout_ms) < 0 && errno == EINTR) {
  }
  return TryReap();
}

std::string ExitStatus::Describe() const {
  if (signal == 0) return absl::StrCat("exit code ", code);
  const char* name = ::strsignal(signal);
  return absl::StrCat("killed by signal ", signal, " (", name != nullptr ? name : "?", ")");
}

absl::StatusOr<std::string> OwnExecutablePath() {
  char path[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof(path));
  if (length < 0) return ErrnoStatus(errno, "reading /proc/self/exe");
  return std::string(path, static_cast<size_t>(length));
}

absl::StatusOr<std::string> FindHelperExecutable(const std::string& name) {
  const absl::StatusOr<std::string> own = OwnExecutablePath();
  if (!own.ok()) return own.status();
  const std::string folder = own->substr(0, own->rfind('/'));
  // Installed (bin/ and libexec/ are neighbours), else beside us in the build tree.
  const std::vector<std::string> candidates = {folder + "/../libexec/sluice/" + name,
                                               folder + "/" + name};
  for (const std::string& candidate : candidates) {
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    if (errno == ENOENT) continue;
    return ErrnoStatus(errno,
                       absl::StrCat("helper program ", candidate, ", which must be executable"));
  }
  return absl::NotFoundError(absl::StrCat("helper program ", name,
                                          " is in none of: ", absl::StrJoin(candidates, ", "),
                                          "; reinstall Sluice, or build its whole tree"));
}

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> environment;
  if (::getauxval(AT_SECURE) != 0) return environment;
  for (char** entry = ::environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  return environment;
}

// From the file that drivers read, of which a container may have its own; else from the kernel.
uint64_t MachineMemoryBytes() {
  std::string name;
  uint64_t kibibytes = 0;
  if (std::ifstream("/proc/meminfo") >> name >> kibibytes && name == "MemTotal:")
    return kibibytes << 10;
  return static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

// Root in a user namespace that an ordinary user has made has no other user to become:
// user_namespaces(7).
bool IsPrivileged() {
  if (::geteuid() != 0) return false;
  std::string groups;
  return !(std::ifstream("/proc/self/setgroups") >> groups) || groups != "deny";
}

absl::StatusOr<UserIdentity> LookUpUser(const std::string& name) {
  std::vector<char> buffer(16384);
  passwd entry = {};
  passwd* found = nullptr;
  const int error_number = ::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (error_number != 0) return ErrnoStatus(error_number, absl::StrCat("looking up user ", name));
  if (found == nullptr) {
    return absl::NotFoundError(absl::StrCat("this machine has no user \"", name, "\""));
  }
  UserIdentity identity;
  identity.name = name;
  identity.home = entry.pw_dir != nullptr ? entry.pw_dir : "";
  identity.uid = entry.pw_uid;
  identity.gid = entry.pw_gid;
  int count = 64;
  identity.groups.resize(static_cast<size_t>(count));
  if (::getgrouplist(name.c_str(), entry.pw_gid, identity.groups.data(), &count) < 0) {
    identity.groups.resize(static_cast<size_t>(count));
    ::getgrouplist(name.c_str(), entry.pw_gid, identity.groups.data(), &count);
  }
  identity.groups.resize(static_cast<size_t>(std::max(count, 0)));
  return identity;
}

absl::StatusOr<gid_t> LookUpGroup(const std::string& name) {
  std::vector<char> buffer(16384);
  group entry = {};
  group* found = nullptr;
  const int error_number = ::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (error_number != 0) return ErrnoStatus(error_number, absl::StrCat("looking up group ", name));
  if (found == nullptr) {
    return absl::NotFoundError(absl::StrCat("this machine has no group \"", name, "\""));
  }
  return entry.gr_gid;
}

}  // namespace sluice::os
