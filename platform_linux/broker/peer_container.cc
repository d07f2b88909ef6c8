// SPDX-License-Identifier: Apache-2.0
#include "broker/tenants/peer_container.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace sluice::broker {
namespace {

// The kernel nests no deeper.
constexpr int kDeepest = 32;

// Identifies a namespace while a descriptor of it is open.
using NamespaceId = std::pair<uint64_t, uint64_t>;

std::optional<NamespaceId> IdOf(int fd) {
  struct stat info;
  if (::fstat(fd, &info) != 0) return std::nullopt;
  return NamespaceId{info.st_dev, info.st_ino};
}

std::optional<NamespaceId> OwnId(const char* path) {
  struct stat info;
  if (::stat(path, &info) != 0) return std::nullopt;
  return NamespaceId{info.st_dev, info.st_ino};
}

struct OwnNamespaces {
  std::optional<NamespaceId> user = OwnId("/proc/self/ns/user");
  std::optional<NamespaceId> pid = OwnId("/proc/self/ns/pid");
};

const OwnNamespaces& Own() {
  static const OwnNamespaces own;
  return own;
}

// The user that the kernel names in place of one without a number in this user namespace; nothing
// if every user has one there.
std::optional<uid_t> FindOverflowUid() {
  std::ifstream map("/proc/self/uid_map");
  uint64_t first = 0;
  uint64_t outside = 0;
  uint64_t count = 0;
  if (map >> first >> outside >> count && first == 0 && outside == 0 && count >= 0xffffffffU)
    return std::nullopt;
  uid_t uid = 65534;
  std::ifstream("/proc/sys/kernel/overflowuid") >> uid;
  return uid;
}

absl::Status CheckHasNumber(uid_t uid) {
  static const std::optional<uid_t> overflow = FindOverflowUid();
  if (overflow != uid) return absl::OkStatus();
  return absl::PermissionDeniedError(
      "your user has no number in the daemon's user namespace, so it cannot be told from other "
      "users: map it there, or run the daemon outside of that namespace");
}

// The owner of the outermost user namespace below this process's that `user_namespace` is or lies
// in; nothing if it does not lie below.
std::optional<uid_t> OwnerOfOutermost(int user_namespace) {
  os::UniqueFd current(::fcntl(user_namespace, F_DUPFD_CLOEXEC, 3));
  for (int depth = 0; current.valid() && depth <= kDeepest; ++depth) {
    os::UniqueFd parent(::ioctl(current.get(), NS_GET_PARENT));
    if (!parent.valid()) return std::nullopt;
    if (IdOf(parent.get()) == Own().user) {
      uid_t owner = 0;
      if (::ioctl(current.get(), NS_GET_OWNER_UID, &owner) != 0) return std::nullopt;
      return owner;
    }
    current = std::move(parent);
  }
  return std::nullopt;
}

std::optional<uid_t> EffectiveUser(int process) {
  const os::UniqueFd file(::openat(process, "status", O_RDONLY | O_CLOEXEC));
  char text[4096] = {};
  if (!file.valid() || ::read(file.get(), text, sizeof(text) - 1) <= 0) return std::nullopt;
  const char* line = std::strstr(text, "\nUid:");
  if (line == nullptr) return std::nullopt;
  std::istringstream numbers(line + 5);
  uid_t real = 0;
  uid_t effective = 0;
  if (!(numbers >> real >> effective)) return std::nullopt;
  return effective;
}

bool HasEnded(int pidfd) {
  pollfd entry = {pidfd, POLLIN, 0};
  return ::poll(&entry, 1, 0) != 0;
}

absl::Status Gone() { return absl::UnavailableError("the process that connected has ended"); }

PeerContainer Unseen(const os::PeerIdentity& peer, std::string why) {
  PeerContainer found;
  found.place = PeerContainer::Place::kUnseen;
  found.owner = peer.uid;
  found.why = std::move(why);
  return found;
}

struct Opened {
  os::UniqueFd user;
  os::UniqueFd pid;
  int error = 0;
};

Opened OpenNamespaces(int process) {
  Opened opened;
  opened.user.reset(::openat(process, "ns/user", O_RDONLY | O_CLOEXEC));
  if (!opened.user.valid()) opened.error = errno;
  opened.pid.reset(::openat(process, "ns/pid", O_RDONLY | O_CLOEXEC));
  if (!opened.pid.valid()) opened.error = errno;
  return opened;
}

}  // namespace

absl::StatusOr<PeerContainer> FindPeerContainer(const os::PeerIdentity& peer) {
  if (absl::Status numbered = CheckHasNumber(peer.uid); !numbered.ok()) return numbered;
  if (peer.pid <= 0) return Unseen(peer, "its process is not in this PID namespace");
  // Paths below this descriptor belong to this process, also when another one gets its number.
  const os::UniqueFd process(
      ::open(absl::StrCat("/proc/", peer.pid).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!process.valid() && errno == ENOENT) return Gone();
  if (!process.valid()) return Unseen(peer, std::strerror(errno));
  Opened opened = OpenNamespaces(process.get());
  // If it still has its number, it is the process that connected. Before Linux 6.5 the number
  // cannot prove that; the user alone is checked.
  os::UniqueFd late;
  if (!peer.pidfd.valid()) {
    late.reset(static_cast<int>(::syscall(SYS_pidfd_open, peer.pid, 0)));
    if (!late.valid() && errno == ESRCH) return Gone();
    if (EffectiveUser(process.get()) != peer.uid)
      return Unseen(peer, "the process with its number has another user");
  }
  const int pidfd = peer.pidfd.valid() ? peer.pidfd.get() : late.get();
  if (pidfd >= 0 && HasEnded(pidfd)) return Gone();
  if (opened.error == ENOENT || opened.error == ESRCH) return Gone();
  if (opened.error != 0) return Unseen(peer, std::strerror(opened.error));

  const std::optional<NamespaceId> user = IdOf(opened.user.get());
  const std::optional<NamespaceId> pid = IdOf(opened.pid.get());
  PeerContainer found;
  found.owner = peer.uid;
  if (user == Own().user && pid == Own().pid) return found;
  if (!user.has_value() || !pid.has_value()) return Unseen(peer, "its namespaces have no numbers");
  found.place = PeerContainer::Place::kContainer;
  if (user != Own().user) found.owner = OwnerOfOutermost(opened.user.get()).value_or(peer.uid);
  if (absl::Status numbered = CheckHasNumber(found.owner); !numbered.ok()) return numbered;
  found.key = absl::StrCat(user->first, ":", user->second, ":", pid->first, ":", pid->second);
  found.held.push_back(std::move(opened.user));
  found.held.push_back(std::move(opened.pid));
  return found;
}

}  // namespace sluice::broker
