// SPDX-License-Identifier: Apache-2.0
//
// Descriptors that a local socket's peer may send, or has sent.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <cstddef>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83  // Linux 6.16.
#endif

namespace sluice::os {

// False: nobody can send descriptors to it. True also for anything but a local socket.
inline bool TakesDescriptors(int fd) {
  int takes = 1;
  socklen_t size = sizeof(takes);
  return ::getsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &takes, &size) != 0 || takes != 0;
}

// Returns how many bytes a recv of `size` would give, and whether descriptors come with them, but
// takes nothing. A recv without room for descriptors would make the calling thread close them.
inline ssize_t PeekFor(int socket, void* buffer, size_t size, int flags, bool* descriptors) {
  iovec part = {buffer, size};
  msghdr message = {};
  ssize_t peeked;
  do {
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    peeked = ::recvmsg(socket, &message, MSG_PEEK | flags);
  } while (peeked < 0 && errno == EINTR);
  *descriptors = peeked >= 0 && (message.msg_flags & MSG_CTRUNC) != 0;
  return peeked;
}

}  // namespace sluice::os
