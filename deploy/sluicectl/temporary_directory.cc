// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/temporary_directory.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"

namespace sluice::ctl {
namespace {

constexpr int kReadEndFd = 3;

void Remove(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

// Keeps nothing of the caller's open but the pipe: whoever reads the command's output must see its
// end.
[[noreturn]] void Sweep(const std::string& path, int hold_read) {
  const int hold = ::fcntl(hold_read, F_DUPFD, kReadEndFd + 1);  // Out of the way of what follows.
  ::setsid();  // The terminal's signals are not meant for us.
  ::prctl(PR_SET_NAME, "sluicectl-sweep");
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  const int null_fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null_fd, standard);
  ::dup2(hold, kReadEndFd);
  ::syscall(SYS_close_range, kReadEndFd + 1U, ~0U, 0U);
  char byte;
  while (::read(kReadEndFd, &byte, 1) < 0 && errno == EINTR) {
  }
  Remove(path);
  ::_exit(0);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TemporaryDirectory>> TemporaryDirectory::Create() {
  const char* base = std::getenv("TMPDIR");
  if (base == nullptr || base[0] != '/') base = "/tmp";
  std::string path = absl::StrCat(base, "/sluice-XXXXXX");
  if (::mkdtemp(path.data()) == nullptr) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("creating a directory in ", base, " (TMPDIR chooses another place)"));
  }
  int ends[2];
  const bool piped = ::pipe2(ends, O_CLOEXEC) == 0;
  const os::UniqueFd read_end(piped ? ends[0] : -1);
  os::UniqueFd write_end(piped ? ends[1] : -1);
  const pid_t sweeper = piped ? ::fork() : -1;
  if (sweeper < 0) {
    const int error_number = errno;
    Remove(path);
    return absl::ErrnoToStatus(error_number, "starting a process");
  }
  if (sweeper == 0) Sweep(path, read_end.get());
  return std::unique_ptr<TemporaryDirectory>(
      new TemporaryDirectory(std::move(path), std::move(write_end), sweeper));
}

TemporaryDirectory::~TemporaryDirectory() {
  Remove(path_);
  ::kill(sweeper_, SIGKILL);
  while (::waitpid(sweeper_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace sluice::ctl
