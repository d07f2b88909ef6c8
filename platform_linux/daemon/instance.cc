// SPDX-License-Identifier: Apache-2.0
#include "broker/instance.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "broker/os/local_socket.h"
#include "broker/os/process.h"

namespace sluice {
namespace {

constexpr int kBacklog = 128;
constexpr int kConnectTestMs = 500;

std::string ReadPid(int fd) {
  char text[32] = {};
  const ssize_t count = ::pread(fd, text, sizeof(text) - 1, 0);
  return count > 0 ? std::string(absl::StripAsciiWhitespace(text)) : std::string("unknown");
}

// False if another daemon has removed the file between our open and our lock.
bool IsFileAt(int fd, const std::string& path) {
  struct stat opened;
  struct stat named;
  return ::fstat(fd, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

}  // namespace

absl::StatusOr<InstanceLock> InstanceLock::Take(const std::string& socket_path) {
  const std::string path = socket_path + ".lock";
  while (true) {
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd.valid()) return absl::ErrnoToStatus(errno, absl::StrCat("opening lock file ", path));
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return absl::ErrnoToStatus(errno, absl::StrCat("locking ", path));
      return absl::AlreadyExistsError(
          absl::StrCat("another sluiced (pid ", ReadPid(fd.get()), ") serves ", socket_path,
                       "; stop it first, or start this one with another --socket"));
    }
    if (!IsFileAt(fd.get(), path)) continue;
    const std::string pid = absl::StrCat(::getpid(), "\n");
    if (::ftruncate(fd.get(), 0) != 0 ||
        ::pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
      return absl::ErrnoToStatus(errno, absl::StrCat("writing ", path));
    }
    return InstanceLock(path, std::move(fd));
  }
}

InstanceLock::~InstanceLock() {
  if (fd_.valid()) ::unlink(path_.c_str());
}

absl::Status MakeParentDirectory(const std::string& path) {
  const std::string parent = path.substr(0, path.rfind('/'));
  if (parent.empty()) return absl::OkStatus();
  const mode_t mode = ::geteuid() == 0 ? 0755 : 0700;
  if (::mkdir(parent.c_str(), mode) == 0) {
    // Whatever the umask is: who may connect is said by the socket's own mode.
    if (::chmod(parent.c_str(), mode) == 0) return absl::OkStatus();
  } else if (errno == EEXIST) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, absl::StrCat("creating directory ", parent));
}

absl::Status RemoveStaleSocket(const std::string& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? absl::OkStatus()
                           : absl::ErrnoToStatus(errno, absl::StrCat("looking at ", path));
  }
  if (!S_ISSOCK(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " exists and is no socket; remove it, or choose another path"));
  }
  absl::Status connected = ConnectLocal(path, kConnectTestMs).status();
  // A listener of another kind of socket lives, too.
  if (connected.ok() || absl::IsDeadlineExceeded(connected) || absl::IsInvalidArgument(connected)) {
    return absl::AlreadyExistsError(
        absl::StrCat("another process serves ", path, "; stop it first, or choose another path"));
  }
  if (!absl::IsUnavailable(connected)) return connected;
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return absl::ErrnoToStatus(errno, absl::StrCat("removing stale socket ", path));
  }
  return absl::OkStatus();
}

void RemoveSocketFile(const std::string& path) { ::unlink(path.c_str()); }

absl::StatusOr<UniqueFd> OpenListener(const Config& config) {
  if (absl::Status removed = RemoveStaleSocket(config.socket); !removed.ok()) return removed;
  // Closed to all until the group is right: between the two steps the wrong group could connect.
  const mode_t first_mode = config.socket_group.empty() ? config.socket_mode : 0600;
  absl::StatusOr<UniqueFd> listener = ListenLocal(config.socket, first_mode, kBacklog);
  if (!listener.ok() || config.socket_group.empty()) return listener;
  absl::StatusOr<gid_t> group = LookUpGroup(config.socket_group);
  absl::Status done = group.status();
  if (done.ok() && (::chown(config.socket.c_str(), static_cast<uid_t>(-1), *group) != 0 ||
                    ::chmod(config.socket.c_str(), config.socket_mode) != 0)) {
    done = absl::ErrnoToStatus(
        errno, absl::StrCat("giving ", config.socket, " to group ", config.socket_group));
  }
  if (done.ok()) return listener;
  ::unlink(config.socket.c_str());
  return done;
}

}  // namespace sluice
