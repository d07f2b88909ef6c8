// SPDX-License-Identifier: Apache-2.0
#include "broker/os/local_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "broker/base/check.h"
#include "broker/os/this_process.h"
#include "platform_linux/above_standard.h"
#include "platform_linux/errno_status.h"
#include "platform_linux/pass_rights.h"

namespace sluice::os {
namespace {

absl::StatusOr<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("socket path \"", path, "\" has ", path.size(),
                                                   " characters, allowed are 1 to ",
                                                   sizeof(address.sun_path) - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// The most that any message can bring (the kernel's SCM_MAX_FD).
constexpr size_t kMostDescriptors = 253;

// Takes ownership of every descriptor in the control data, whatever else it holds.
void CollectDescriptors(msghdr* message, std::vector<UniqueFd>* out) {
  for (cmsghdr* control = CMSG_FIRSTHDR(message); control != nullptr;
       control = CMSG_NXTHDR(message, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(control) + i * sizeof(int), sizeof(int));
      out->emplace_back(fd);
    }
  }
}

int64_t NowMs() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

// OK once one of `events` has come, or the socket is at its end.
absl::Status WaitFor(int socket, short events, int timeout_ms) {
  const int64_t deadline_ms = timeout_ms < 0 ? 0 : NowMs() + timeout_ms;
  while (true) {
    int wait_ms = -1;
    if (timeout_ms >= 0) wait_ms = static_cast<int>(std::max<int64_t>(0, deadline_ms - NowMs()));
    pollfd entry = {socket, events, 0};
    const int ready = ::poll(&entry, 1, wait_ms);
    if (ready > 0) return absl::OkStatus();
    if (ready == 0)
      return absl::DeadlineExceededError(absl::StrCat("no answer in ", timeout_ms, " ms"));
    if (errno != EINTR) return ErrnoStatus(errno, "poll");
  }
}

absl::StatusOr<size_t> NothingReceived(int error_number) {
  if (error_number == EAGAIN) return absl::UnavailableError("receive would block");
  if (error_number == ECONNRESET) return size_t{0};  // The peer ended with our bytes unread.
  return ErrnoStatus(error_number, "receiving a message");
}

}  // namespace

absl::Status SendMessage(int socket, const void* data, size_t size, const int* fds, int fd_count) {
  SLUICE_CHECK(fd_count >= 0 && fd_count <= kMaxDescriptorsPerMessage);
  SLUICE_CHECK(size > 0);
  iovec part = {const_cast<void*>(data), size};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxDescriptorsPerMessage)] = {};
  if (fd_count > 0) {
    const size_t fd_bytes = sizeof(int) * static_cast<size_t>(fd_count);
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fd_bytes);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fd_bytes);
    std::memcpy(CMSG_DATA(header), fds, fd_bytes);
  }
  ssize_t sent;
  do {
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return absl::OkStatus();  // A packet is sent whole or not at all.
  if (errno == EAGAIN) return absl::UnavailableError("send would block");
  if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN) {
    return absl::AbortedError("the peer has closed the connection");
  }
  return ErrnoStatus(errno, absl::StrCat("sending ", size, " bytes"));
}

absl::StatusOr<size_t> ReceiveMessage(int socket, void* buffer, size_t capacity,
                                      std::vector<UniqueFd>* fds, int max_fds) {
  SLUICE_CHECK(max_fds >= 0 && max_fds <= kMaxDescriptorsPerMessage);
  SLUICE_CHECK(max_fds == 0 || fds != nullptr);
  if (fds != nullptr) fds->clear();
  if (max_fds == 0) {
    bool descriptors = false;
    char byte;
    ssize_t peeked = PeekFor(socket, &byte, sizeof(byte), 0, &descriptors);
    // The peer ended with our bytes unread, which the system reports once; its messages are still
    // there.
    if (peeked < 0 && errno == ECONNRESET)
      peeked = PeekFor(socket, &byte, sizeof(byte), 0, &descriptors);
    // Receives nothing that was not looked at: a message that comes now may bring descriptors.
    if (peeked < 0) return NothingReceived(errno);
    if (descriptors)
      return absl::InvalidArgumentError("message carries descriptors, none are taken");
  }
  iovec part = {buffer, capacity};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMostDescriptors)];
  msghdr message = {};
  ssize_t received;
  do {
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = max_fds > 0 ? control : nullptr;
    message.msg_controllen = max_fds > 0 ? sizeof(control) : 0;
    received = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  if (received < 0) return NothingReceived(errno);
  // From here they are the caller's, whatever is refused below.
  std::vector<UniqueFd> none;
  std::vector<UniqueFd>& received_fds = fds != nullptr ? *fds : none;
  CollectDescriptors(&message, &received_fds);
  for (UniqueFd& fd : received_fds) {
    fd = AboveStandard(std::move(fd));
    if (!fd.valid()) return ErrnoStatus(errno, "receiving a descriptor (is `ulimit -n` too low?)");
  }
  // There was room for all: the kernel had no more descriptors for this process.
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    return absl::ResourceExhaustedError(
        "this process has no descriptors left for those that a message brought: raise the limit on "
        "its open files (ulimit -n)");
  }
  if (received_fds.size() > static_cast<size_t>(max_fds)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "message carries ", received_fds.size(), " descriptors, at most ", max_fds, " are taken"));
  }
  if ((message.msg_flags & MSG_TRUNC) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("message is larger than ", capacity, " bytes"));
  }
  return static_cast<size_t>(received);
}

absl::Status WaitReadable(int socket, int timeout_ms) {
  return WaitFor(socket, POLLIN, timeout_ms);
}

absl::Status AwaitMessage(int socket) {
  // Not poll, which looks the descriptor up again each time it is woken.
  char byte;
  ssize_t peeked;
  do {
    peeked = ::recv(socket, &byte, sizeof(byte), MSG_PEEK);
  } while (peeked < 0 && errno == EINTR);
  return peeked >= 0 || errno == ECONNRESET ? absl::OkStatus()
                                            : ErrnoStatus(errno, "waiting for a message");
}

absl::Status AwaitHangUp(int socket) { return WaitFor(socket, POLLRDHUP, -1); }

absl::Status WaitWritable(int socket, int timeout_ms) {
  return WaitFor(socket, POLLOUT, timeout_ms);
}

void HangUp(int socket) { ::shutdown(socket, SHUT_RDWR); }

absl::StatusOr<std::pair<UniqueFd, UniqueFd>> CreateSocketPair(FirstEnd) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return ErrnoStatus(errno, "socketpair");
  }
  std::pair<UniqueFd, UniqueFd> own(AboveStandard(UniqueFd(ends[0])),
                                    AboveStandard(UniqueFd(ends[1])));
  if (!own.first.valid() || !own.second.valid()) return ErrnoStatus(errno, "socketpair");
  return own;
}

absl::StatusOr<UniqueFd> ConnectLocal(const std::string& path, int timeout_ms) {
  const absl::StatusOr<sockaddr_un> address = AddressOf(path);
  if (!address.ok()) return address.status();
  UniqueFd socket = AboveStandard(UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)));
  if (!socket.valid()) return ErrnoStatus(errno, "socket");
  // connect() on a Unix socket waits for room in the listener's queue; the send timeout bounds it.
  if (timeout_ms >= 0) {
    const int bounded_ms = std::max(timeout_ms, 1);
    const timeval limit = {bounded_ms / 1000, (bounded_ms % 1000) * 1000L};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  }
  int result;
  do {
    result =
        ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address));
  } while (result != 0 && errno == EINTR);
  if (result != 0) {
    const int error = errno;
    const std::string what = absl::StrCat("connecting to ", path);
    struct stat info = {};
    if (::stat(path.c_str(), &info) == 0 && !S_ISSOCK(info.st_mode))
      return absl::InvalidArgumentError(what + ": this is no socket");
    errno = error;
    if (errno == ECONNREFUSED) return absl::UnavailableError(what + ": nobody listens there");
    if (errno == EAGAIN) return absl::DeadlineExceededError(what + ": the listener is busy");
    if (errno == EPROTOTYPE) return absl::InvalidArgumentError(what + ": a socket of another kind");
    return ErrnoStatus(errno, what);
  }
  const timeval unlimited = {0, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &unlimited, sizeof(unlimited));
  return socket;
}

absl::StatusOr<UniqueFd> ListenLocal(const std::string& path, mode_t mode, int backlog) {
  const absl::StatusOr<sockaddr_un> address = AddressOf(path);
  if (!address.ok()) return address.status();
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return ErrnoStatus(errno, "socket");
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) != 0) {
    return ErrnoStatus(errno, absl::StrCat("creating socket ", path));
  }
  // Before listen(): until then nobody can connect, so that the umask's mode lets nobody in.
  if (::chmod(path.c_str(), mode) != 0 || ::listen(socket.get(), backlog) != 0) {
    const absl::Status failed = ErrnoStatus(errno, absl::StrCat("listening on ", path));
    ::unlink(path.c_str());
    return failed;
  }
  return socket;
}

absl::StatusOr<UniqueFd> AcceptLocal(int listener) {
  UniqueFd connection(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (connection.valid()) return connection;
  if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) {
    return absl::UnavailableError("no connection waits");
  }
  return ErrnoStatus(errno, "accept");
}

const int kDeliveryMs = 0;

absl::StatusOr<std::pair<UniqueFd, UniqueFd>> CreateStreamPair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    return ErrnoStatus(errno, "socketpair");
  }
  return std::pair<UniqueFd, UniqueFd>(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

void LimitUnread(int socket, int bytes) {
  ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

void RefuseDescriptors(int socket) {
  const int refuse = 0;
  ::setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &refuse, sizeof(refuse));
}

bool IsLocalListener(int fd) {
  int domain = 0;
  int type = 0;
  int listening = 0;
  socklen_t length = sizeof(int);
  return ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_UNIX &&
         ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_SEQPACKET &&
         ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) == 0 && listening == 1;
}

const char kLocalScheme[] = "unix:";

absl::Status CheckLocalName(const std::string& name) {
  constexpr size_t kMaxPath = sizeof(sockaddr_un::sun_path) - 1;
  // Other places' names are made of this one: ".." would lead them elsewhere.
  const bool file = !name.ends_with('/') && !name.ends_with("/.") &&
                    (name + "/").find("/../") == std::string::npos;
  if (name.starts_with('/') && name.size() <= kMaxPath && file) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("an absolute path of at most ", kMaxPath,
                                                 " characters, of a file and without \"..\""));
}

bool IsSameLocalName(const std::string& a, const std::string& b) { return a == b; }

absl::Status SetNonBlocking(int fd, bool non_blocking) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return ErrnoStatus(errno, "fcntl(F_GETFL)");
  const int wanted = non_blocking ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
  if (::fcntl(fd, F_SETFL, wanted) != 0) return ErrnoStatus(errno, "fcntl(F_SETFL)");
  return absl::OkStatus();
}

}  // namespace sluice::os
