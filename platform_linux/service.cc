// SPDX-License-Identifier: Apache-2.0
#include "broker/os/service.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace sluice::os {
namespace {

constexpr int kFirstInheritedFd = 3;
constexpr int kMaxInheritedFds = 16;

std::string PathOf(int socket) {
  sockaddr_un address = {};
  socklen_t size = sizeof(address);
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      address.sun_family != AF_UNIX || size <= offsetof(sockaddr_un, sun_path)) {
    return "";
  }
  // An abstract path begins with a 0 byte, and the kernel ends a path with one only if there is
  // room.
  const size_t room = std::min<size_t>(size, sizeof(address)) - offsetof(sockaddr_un, sun_path);
  return std::string(address.sun_path, ::strnlen(address.sun_path, room));
}

}  // namespace

int RunUnderServiceManager(bool, const std::function<int()>& serve) { return serve(); }

std::string DefaultConfigFile() { return "/etc/sluice/sluiced.toml"; }

absl::Status CheckConfigOwner(const std::string&) { return absl::OkStatus(); }

const char* ServiceControlHelp() {
  return "Signals: SIGTERM drains (no new sessions; the running ones have --drain-timeout-ms to "
         "end).\n"
         "A second SIGTERM stops at once. SIGHUP reads the file again and looks for devices "
         "anew.\n";
}

// The variable may be inherited from a program with another stderr: it names the file that it is
// about.
bool StderrIsJournal() {
  const char* journal = std::getenv("JOURNAL_STREAM");
  struct stat file = {};
  if (journal == nullptr || ::fstat(STDERR_FILENO, &file) != 0) return false;
  return absl::StrCat(file.st_dev, ":", file.st_ino) == journal;
}

// The journal reads stderr.
void LogServiceEvent(ServiceEvent, const std::string&) {}

bool NotifyService(const std::string& state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  if (path == nullptr || (path[0] != '/' && path[0] != '@')) return false;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const size_t length = std::strlen(path);
  if (length >= sizeof(address.sun_path)) return false;
  std::memcpy(address.sun_path, path, length);
  if (path[0] == '@') address.sun_path[0] = '\0';  // An abstract socket.
  UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return false;
  const auto address_size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  return ::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL,
                  reinterpret_cast<const sockaddr*>(&address),
                  address_size) == static_cast<ssize_t>(state.size());
}

std::vector<InheritedSocket> TakeInheritedSockets() {
  std::vector<InheritedSocket> sockets;
  const char* pid_text = std::getenv("LISTEN_PID");
  const char* count_text = std::getenv("LISTEN_FDS");
  const char* names_text = std::getenv("LISTEN_FDNAMES");
  int pid = 0;
  int count = 0;
  const bool ours = pid_text != nullptr && count_text != nullptr &&
                    absl::SimpleAtoi(pid_text, &pid) && pid == ::getpid() &&
                    absl::SimpleAtoi(count_text, &count);
  if (ours) {
    std::vector<std::string> names;
    if (names_text != nullptr) names = absl::StrSplit(names_text, ':');
    for (int i = 0; i < std::min(count, kMaxInheritedFds); ++i) {
      const int fd = kFirstInheritedFd + i;
      if (::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) continue;  // There is no such descriptor.
      const auto index = static_cast<size_t>(i);
      sockets.push_back({index < names.size() ? names[index] : "", PathOf(fd), UniqueFd(fd)});
    }
  }
  ::unsetenv("LISTEN_PID");
  ::unsetenv("LISTEN_FDS");
  ::unsetenv("LISTEN_FDNAMES");
  return sockets;
}

}  // namespace sluice::os
