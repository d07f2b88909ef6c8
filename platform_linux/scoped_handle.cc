// SPDX-License-Identifier: Apache-2.0
#include "broker/os/scoped_handle.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "platform_linux/above_standard.h"

namespace sluice::os {

void UniqueFd::reset(int fd) {
  if (fd_ >= 0) {
    const int saved_errno = errno;
    // Not retried on EINTR: on Linux the descriptor is gone by then, and may be another thread's.
    ::close(fd_);
    errno = saved_errno;
  }
  fd_ = fd;
}

UniqueFd DuplicateFd(int fd) { return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, kFirstOwnFd)); }

UniqueFd AboveStandard(UniqueFd fd) {
  if (!fd.valid() || fd.get() >= kFirstOwnFd) return fd;
  return DuplicateFd(fd.get());
}

}  // namespace sluice::os
