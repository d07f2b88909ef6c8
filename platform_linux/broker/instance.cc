// SPDX-License-Identifier: Apache-2.0
#include "broker/instance.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "broker/base/daemon_places.h"
#include "broker/base/log.h"
#include "broker/os/local_socket.h"
#include "broker/os/process.h"

namespace sluice::broker {
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

std::string ParentFolder(const std::string& path) { return path.substr(0, path.rfind('/')); }

absl::Status MakeFolder(const std::string& folder) {
  const mode_t mode = ::geteuid() == 0 ? 0755 : 0700;
  if (::mkdir(folder.c_str(), mode) == 0) {
    // Whatever the umask is: the socket's own mode says who may connect.
    if (::chmod(folder.c_str(), mode) == 0) return absl::OkStatus();
  } else if (errno == EEXIST) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, absl::StrCat("creating directory ", folder));
}

// A folder whose name follows from another's: somebody else may have made it first (/tmp).
absl::Status MakeOwnFolder(const std::string& folder, const char* what, const char* otherwise) {
  if (absl::Status made = MakeFolder(folder); !made.ok()) {
    return absl::Status(
        made.code(), absl::StrCat(made.message(), " for ", what,
                                  ", which do not belong into the clients' folder; have the "
                                  "socket in a folder \"clients\" of a folder of the daemon's own",
                                  otherwise));
  }
  struct stat info;
  if (::lstat(folder.c_str(), &info) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("looking at ", folder));
  const char* const wrong = !S_ISDIR(info.st_mode)                      ? "is no folder"
                            : info.st_uid != ::geteuid()                ? "is another user's"
                            : (info.st_mode & (S_IWGRP | S_IWOTH)) != 0 ? "can be written by others"
                                                                        : nullptr;
  if (wrong == nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(folder, ", where the daemon has ", what,
                                                    ", is there already and ", wrong,
                                                    "; remove it, or have the socket elsewhere"));
}

// Whoever could rename one of them would choose where the socket lies, and whose mode is set.
absl::Status CheckFoldersAbove(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string folder = path.substr(0, slash);
    struct stat link;
    struct stat info;
    if (::lstat(folder.c_str(), &link) != 0 || ::stat(folder.c_str(), &info) != 0) {
      if (errno == ENOENT) continue;  // Creating it will report that.
      return absl::ErrnoToStatus(errno, absl::StrCat("looking at ", folder));
    }
    const auto trusted = [](uid_t uid) { return uid == 0 || uid == ::geteuid(); };
    const bool by_others =
        (info.st_mode & S_IWOTH) != 0 || ((info.st_mode & S_IWGRP) != 0 && info.st_gid != 0);
    const bool safe = !by_others || (info.st_mode & S_ISVTX) != 0;
    if (trusted(link.st_uid) && trusted(info.st_uid) && safe) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(folder,
                     " is another user's, or others may write there: they could put "
                     "something else in the place of the socket's folder"));
  }
  return absl::OkStatus();
}

// Another entry than the socket in the folder, in words that follow its name; "" if there is none.
std::string OtherEntry(const std::string& folder, const std::string& socket) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path() != socket)
      return absl::StrCat("has \"", entry.path().filename().string(), "\" in it");
  }
  return error ? absl::StrCat("cannot be read: ", error.message()) : "";
}

void RemoveDeadSocket(const std::string& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode)) return;
  if (absl::IsUnavailable(os::ConnectLocal(path, kConnectTestMs).status())) ::unlink(path.c_str());
}

}  // namespace

absl::StatusOr<InstanceLock> InstanceLock::Take(const std::string& socket_path) {
  const std::string path = StateFileOf(socket_path, ".lock");
  while (true) {
    os::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
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
  if (!fd_.valid()) return;
  ::unlink(path_.c_str());
  if (absl::EndsWith(ParentFolder(path_), "-state"))
    ::rmdir(ParentFolder(path_).c_str());  // If empty.
}

absl::Status MakeParentDirectory(const std::string& path) {
  const std::string parent = ParentFolder(path);
  if (parent.empty()) return absl::OkStatus();
  // For X/clients, X as well, but no folder above: if that is missing, the name may be a mistake.
  if (absl::EndsWith(parent, "/clients") && parent.rfind('/') != 0) {
    if (absl::Status made = MakeFolder(ParentFolder(parent)); !made.ok()) return made;
  }
  return MakeFolder(parent);
}

namespace {

absl::Status MakeFolders(const Config& config) {
  if (absl::Status made = MakeParentDirectory(config.socket); !made.ok()) return made;
  // X, of X/clients, is there now.
  const std::string state = StateFolderOf(config.socket);
  if (OldClientNameOf(config.socket).empty()) {
    if (absl::Status made = MakeOwnFolder(state, "its own files", ""); !made.ok()) return made;
  }
  if (config.admin_socket != AdminNameOf(config.socket)) return absl::OkStatus();
  return MakeOwnFolder(ParentFolder(config.admin_socket), "operators' sockets",
                       "; or name another place with admin_socket in [broker] (--admin-socket)");
}

}  // namespace

absl::Status MakeDaemonFolders(const Config& config) {
  const absl::Status made = MakeFolders(config);
  const bool machines = ::geteuid() != 0 && absl::StartsWith(config.socket, "/run/sluice/") &&
                        config.socket == DefaultLocalName();
  if (made.ok() || !machines) return made;
  // As after su and in cron's jobs.
  return absl::Status(
      made.code(),
      absl::StrCat(
          made.message(),
          "; that is where root's daemon lives, and XDG_RUNTIME_DIR, which would give this "
          "user a place, is not set: set it, or name a socket elsewhere (--socket, or "
          "socket in [broker])"));
}

bool LinkOldPlaces(const Config& config) {
  const std::string link = OldClientNameOf(config.socket);
  if (link.empty() || config.socket != DefaultLocalName() || !OldPlacesServed()) return false;
  // It may be of an earlier daemon that was killed; a socket at which one answers stays.
  const std::string admin = OldAdminNameOf(config.socket);
  if (config.admin_socket != admin) RemoveDeadSocket(admin);
  RemoveDeadSocket(link);
  const std::string target = config.socket.substr(ParentFolder(link).size() + 1);
  if (::symlink(target.c_str(), link.c_str()) == 0) return true;
  char there[sizeof(sockaddr_un::sun_path)] = {};
  // A link that somebody else made (tmpfiles) stays when this daemon ends.
  if (errno == EEXIST && ::readlink(link.c_str(), there, sizeof(there) - 1) > 0 && there == target)
    return false;
  Log(LogLevel::kWarning, "broker",
      "programs that look for the daemon where it was until version 0.1 do not find it",
      {{"link", link}, {"to", target}, {"reason", std::strerror(errno)}});
  return false;
}

void UnlinkOldPlaces(const Config& config) { ::unlink(OldClientNameOf(config.socket).c_str()); }

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
  absl::Status connected = os::ConnectLocal(path, kConnectTestMs).status();
  // A listener of another kind of socket is alive, too.
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

absl::StatusOr<os::UniqueFd> OpenListener(const ListenerPlace& place) {
  if (absl::Status removed = RemoveStaleSocket(place.path); !removed.ok()) return removed;
  // The owner's alone until the group is right: between the two steps the wrong group could
  // connect.
  const mode_t first_mode = place.group.empty() ? place.mode : 0600;
  absl::StatusOr<os::UniqueFd> listener = os::ListenLocal(place.path, first_mode, kBacklog);
  if (!listener.ok() || place.group.empty()) return listener;
  absl::StatusOr<gid_t> group = os::LookUpGroup(place.group);
  absl::Status done = group.status();
  if (done.ok() && (::chown(place.path.c_str(), static_cast<uid_t>(-1), *group) != 0 ||
                    ::chmod(place.path.c_str(), place.mode) != 0)) {
    done =
        absl::ErrnoToStatus(errno, absl::StrCat("giving ", place.path, " to group ", place.group));
  }
  if (done.ok()) return listener;
  ::unlink(place.path.c_str());
  return done;
}

absl::Status MakeListenerFolder(const std::string& socket) {
  const std::string folder = ParentFolder(socket);
  if (folder.empty())
    return absl::InvalidArgumentError(absl::StrCat(socket, " lies in \"/\", not in a folder"));
  const std::string above = ParentFolder(folder);
  if (absl::Status safe = CheckFoldersAbove(above + "/x"); !safe.ok()) return safe;
  if (absl::EndsWith(above, "-tenants")) {
    if (absl::Status made = MakeFolder(above); !made.ok()) return made;
  }
  if (absl::Status safe = CheckFoldersAbove(folder); !safe.ok()) return safe;
  if (absl::Status made = MakeFolder(folder); !made.ok()) return made;
  struct stat info;
  if (::lstat(folder.c_str(), &info) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("looking at ", folder));
  const std::string wrong = !S_ISDIR(info.st_mode)       ? "is no folder"
                            : info.st_uid != ::geteuid() ? "is another user's"
                            : (info.st_mode & (S_IWGRP | S_IWOTH)) != 0
                                ? "can be written by others"
                                : OtherEntry(folder, socket);
  if (wrong.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(folder, ", which is to hold the socket and nothing else, ", wrong));
}

void RemoveListenerFolder(const std::string& socket) { ::rmdir(ParentFolder(socket).c_str()); }

}  // namespace sluice::broker
