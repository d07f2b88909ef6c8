// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/run_command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "broker/base/grpc_environment.h"
#include "broker/os/local_socket.h"
#include "broker/os/this_process.h"
#include "deploy/sluicectl/doctor.h"
#include "deploy/sluicectl/endpoint.h"
#include "deploy/sluicectl/exit_codes.h"
#include "deploy/sluicectl/output.h"
#include "deploy/sluicectl/private_daemon.h"
#include "deploy/sluicectl/remote_client.h"
#include "deploy/sluicectl/temporary_directory.h"

namespace sluice::ctl {
namespace {

constexpr int kConnectTestMs = 500;
constexpr int kDescribeMs = 5'000;  // Of a name, a route, TLS and an answer.
// Signals that by default end a process, and are sent rather than its own doing.
constexpr int kForwardedSignals[] = {SIGINT,  SIGTERM,   SIGHUP,  SIGQUIT, SIGUSR1, SIGUSR2,
                                     SIGALRM, SIGVTALRM, SIGPROF, SIGPOLL, SIGPWR,  SIGXCPU};

sigset_t ForwardedSet() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : kForwardedSignals) ::sigaddset(&set, number);
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) ::sigaddset(&set, number);
  return set;
}

// In the child. Does not return if the command could be started.
int Exec(const RunFlags& flags, const sigset_t& blocked, pid_t parent) {
  // SIGKILL cannot be passed on: should sluicectl be killed, this stands for it.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(kExitRunFailed);
  if (flags.child_signals_ignored) ::signal(SIGCHLD, SIG_IGN);
  ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
  std::vector<char*> argv;
  argv.reserve(flags.command.size() + 1);
  for (const std::string& argument : flags.command)
    argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  return errno;
}

struct StartedCommand {
  pid_t pid = -1;
  int exec_errno = 0;  // Not 0: it could not be executed, and is reaped.
};

// A program that cannot be started may want more than this process may have: names the limits that
// are low.
std::string LowLimits() {
  constexpr rlim_t kEnough = 64;
  std::string text;
  rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < kEnough)
    absl::StrAppend(&text, " (open files are limited to ", limit.rlim_cur, " here: ulimit -n)");
  if (::geteuid() != 0 && ::getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur < kEnough) {
    absl::StrAppend(&text, " (processes and threads of this user are limited to ", limit.rlim_cur,
                    " here: ulimit -u)");
  }
  return text;
}

// `blocked`: the signals that the command does not get, as those who started us wanted it.
StartedCommand StartCommand(const RunFlags& flags, const sigset_t& blocked) {
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) return {-1, errno};
  const os::UniqueFd report_read(report[0]);
  os::UniqueFd report_write(report[1]);
  StartedCommand started;
  const pid_t own_pid = ::getpid();
  started.pid = ::fork();
  if (started.pid < 0) return {-1, errno};
  if (started.pid == 0) {
    const int error_number = Exec(flags, blocked, own_pid);
    [[maybe_unused]] const ssize_t written =
        ::write(report_write.get(), &error_number, sizeof(error_number));
    ::_exit(kExitNotFound);
  }
  report_write.reset();
  ssize_t count;
  do {
    count = ::read(report_read.get(), &started.exec_errno, sizeof(started.exec_errno));
  } while (count < 0 && errno == EINTR);
  if (count == sizeof(started.exec_errno)) ::waitpid(started.pid, nullptr, 0);
  return started;
}

// Passes signals on until the command has ended; its wait status.
absl::StatusOr<int> WaitForCommand(pid_t pid, int signals) {
  const os::UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid()) {
    return absl::UnimplementedError("pidfd_open failed: Linux 5.11 or later is needed");
  }
  while (true) {
    pollfd entries[] = {{pidfd.get(), POLLIN, 0}, {signals, POLLIN, 0}};
    if (::poll(entries, 2, -1) < 0 && errno != EINTR) break;
    signalfd_siginfo info;
    // The terminal's signals (code > 0) have reached the command already: it is in our process
    // group.
    while (entries[1].revents != 0 && ::read(signals, &info, sizeof(info)) == sizeof(info)) {
      if (info.ssi_code <= 0) ::kill(pid, static_cast<int>(info.ssi_signo));
    }
    if (entries[0].revents != 0) break;
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// The .icd file and the variables by which the loaders find it: OCL_ICD_VENDORS is ocl-icd's and
// the newer Khronos loader's, OCL_ICD_FILENAMES the older Khronos loader's. The loader that CUDA
// brings puts a file's name right behind the folder's.
absl::Status PointLoadersAt(const std::string& library, const std::string& directory) {
  const std::string vendors = directory + "/vendors/";
  const std::string file = vendors + "sluice.icd";
  if (::mkdir(vendors.c_str(), 0700) != 0) return absl::ErrnoToStatus(errno, vendors);
  std::ofstream out(file);
  out << library << "\n";
  out.close();
  if (!out) return absl::InternalError(absl::StrCat("cannot write ", file));
  ::setenv("OCL_ICD_VENDORS", vendors.c_str(), 1);
  ::setenv("OCL_ICD_FILENAMES", library.c_str(), 1);
  return absl::OkStatus();
}

class CommandRun {
 public:
  explicit CommandRun(const RunFlags& flags) : flags_(flags) {}

  int Run() {
    RunChecked();
    Report();
    return exit_code_;
  }

 private:
  void RunChecked();
  absl::StatusOr<std::string> GivenLibrary() const;
  void RunInDirectory(const std::string& library);
  std::unique_ptr<PrivateDaemon> StartDaemon(const TemporaryDirectory& directory);
  void RunPrepared();
  void WarnWithoutDaemon();
  void Warn(const std::string& text);
  void Fail(int exit_code, const std::string& message) {
    exit_code_ = exit_code;
    error_ = message;
  }
  void Report() const;

  const RunFlags& flags_;
  int exit_code_ = kExitOk;
  sigset_t blocked_;  // Before we began.
  int signal_ = 0;
  std::string error_;
  std::vector<std::string> warnings_;
};

void CommandRun::Warn(const std::string& text) {
  warnings_.push_back(text);
  if (!flags_.json) std::fprintf(stderr, "sluicectl: warning: %s\n", text.c_str());
}

void CommandRun::Report() const {
  if (!flags_.json) {
    if (!error_.empty()) std::fprintf(stderr, "sluicectl: %s\n", error_.c_str());
    return;
  }
  const char* endpoint = std::getenv("SLUICE_ENDPOINT");
  nlohmann::json answer = {{"exit_code", exit_code_}, {"warnings", warnings_}};
  if (endpoint != nullptr) answer["endpoint"] = endpoint;
  if (signal_ != 0) answer["signal"] = signal_;
  if (!error_.empty()) answer["error"] = error_;
  // In one line, so that it can be told from what the program has written before.
  std::fputs(JsonLine(answer).c_str(), stderr);
}

// A program that finds no platform says so in words of its own, or not at all.
void CommandRun::WarnWithoutDaemon() {
  const absl::StatusOr<std::vector<EndpointAddress>> endpoints = ResolveEndpoints(flags_.endpoint);
  if (!endpoints.ok()) return Warn(std::string(endpoints.status().message()));
  const std::optional<std::string> poll_strategy = os::EnvironmentVariable(kGrpcPollStrategy);
  MendGrpcEnvironment().IgnoreError();
  for (const EndpointAddress& endpoint : *endpoints) {
    const absl::Status reached = endpoint.local()
                                     ? os::ConnectLocal(endpoint.target, kConnectTestMs).status()
                                     : DescribeNetwork(endpoint.target, kDescribeMs).status();
    if (reached.ok()) continue;
    Warn(absl::StrCat("no daemon at ", endpoint.text, " (", reached.message(),
                      "); --private starts one for the program, `sluicectl doctor` looks closer"));
  }
  // The program finds its environment as it was given.
  if (poll_strategy.has_value()) ::setenv(kGrpcPollStrategy, poll_strategy->c_str(), 1);
}

void CommandRun::RunPrepared() {
  const StartedCommand started = StartCommand(flags_, blocked_);
  if (started.exec_errno != 0) {
    return Fail(
        started.exec_errno == ENOENT ? kExitNotFound : kExitCannotExec,
        absl::StrCat("cannot run ", flags_.command[0], ": ", std::strerror(started.exec_errno),
                     started.pid < 0 ? LowLimits() : ""));
  }
  const sigset_t set = ForwardedSet();
  const os::UniqueFd signals(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  const absl::StatusOr<int> status = WaitForCommand(started.pid, signals.get());
  if (!status.ok())
    return Fail(kExitRunFailed, absl::StrCat(status.status().message(), LowLimits()));
  if (WIFSIGNALED(*status)) signal_ = WTERMSIG(*status);
  exit_code_ = signal_ != 0 ? kExitSignalBase + signal_ : WEXITSTATUS(*status);
}

std::unique_ptr<PrivateDaemon> CommandRun::StartDaemon(const TemporaryDirectory& directory) {
  const sigset_t set = ForwardedSet();
  const os::UniqueFd signals(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  PrivateDaemon::Options options;
  options.directory = directory.path();
  options.config_file = flags_.config_file;
  options.hold = directory.hold();
  options.verbose = flags_.verbose;
  absl::StatusOr<std::unique_ptr<PrivateDaemon>> started =
      PrivateDaemon::Start(options, signals.get());
  if (!started.ok()) {
    Fail(kExitRunFailed, absl::StrCat(started.status().message(), LowLimits()));
    return nullptr;
  }
  ::setenv("SLUICE_ENDPOINT", (*started)->endpoint().c_str(), 1);
  if (!(*started)->problem().empty()) {
    Warn(absl::StrCat("the daemon has no devices: ", (*started)->problem()));
  }
  return *std::move(started);
}

void CommandRun::RunInDirectory(const std::string& library) {
  // From here on signals end the command, then us, in order: everything below is cleaned up.
  const sigset_t set = ForwardedSet();
  ::sigprocmask(SIG_BLOCK, &set, &blocked_);
  const absl::StatusOr<std::unique_ptr<TemporaryDirectory>> directory =
      TemporaryDirectory::Create();
  if (!directory.ok())
    return Fail(kExitRunFailed, absl::StrCat(directory.status().message(), LowLimits()));
  std::unique_ptr<PrivateDaemon> daemon;
  if (flags_.private_daemon) {
    daemon = StartDaemon(**directory);
    if (daemon == nullptr) return;
  } else {
    WarnWithoutDaemon();
  }
  // After the daemon has started: its workers keep the drivers that were chosen outside.
  if (absl::Status pointed = PointLoadersAt(library, (*directory)->path()); !pointed.ok()) {
    return Fail(kExitRunFailed, std::string(pointed.message()));
  }
  RunPrepared();
}

// A loader passes over a driver that it cannot load, and says nothing.
absl::StatusOr<std::string> CommandRun::GivenLibrary() const {
  // As a loader would take it, a bare name is looked for among the system's libraries.
  std::error_code error;
  const std::string path = std::filesystem::absolute(flags_.icd_library, error).string();
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("--icd: ", flags_.icd_library));
  const absl::Status driver = CheckDriver(path);
  if (driver.ok()) return path;
  if (!absl::IsInvalidArgument(driver)) return driver;
  return absl::InvalidArgumentError(
      absl::StrCat("--icd: ", driver.message(),
                   "; name a libsluice_icd.so, or leave --icd out for this sluicectl's own"));
}

void CommandRun::RunChecked() {
  // The one around us is not what the program is given.
  if (flags_.private_daemon || !flags_.endpoint.empty()) ::unsetenv("SLUICE_ENDPOINT");
  if (flags_.private_daemon && !flags_.endpoint.empty()) {
    return Fail(kExitUsage,
                "--private starts a daemon of its own: --endpoint makes no sense with it");
  }
  if (!flags_.private_daemon && (!flags_.config_file.empty() || flags_.verbose)) {
    return Fail(kExitUsage, "--config and --verbose are for the daemon that --private starts");
  }
  const absl::StatusOr<std::string> library =
      flags_.icd_library.empty() ? FindIcdLibrary() : GivenLibrary();
  if (!library.ok()) {
    return Fail(absl::IsInvalidArgument(library.status()) ? kExitUsage : kExitRunFailed,
                std::string(library.status().message()));
  }
  if (::access(library->c_str(), R_OK) != 0) {
    return Fail(kExitRunFailed,
                absl::StrCat("cannot read the driver ", *library, ": ", std::strerror(errno)));
  }
  if (!flags_.endpoint.empty()) {
    const absl::StatusOr<std::vector<EndpointAddress>> endpoints =
        ResolveEndpoints(flags_.endpoint);
    if (!endpoints.ok()) return Fail(kExitUsage, std::string(endpoints.status().message()));
    ::setenv("SLUICE_ENDPOINT", flags_.endpoint.c_str(), 1);
  }
  RunInDirectory(*library);
}

}  // namespace

int RunCommand(const RunFlags& flags) { return CommandRun(flags).Run(); }

}  // namespace sluice::ctl
