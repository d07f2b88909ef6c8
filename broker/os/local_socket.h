// SPDX-License-Identifier: Apache-2.0
//
// Local sockets that keep message boundaries (SOCK_SEQPACKET; on Windows named pipes) and carry
// descriptors. The broker's socket, the handle channels and the control sockets are all of this
// kind.
//
// The peer is not trusted: a message that does not fit, or that carries more descriptors than asked
// for, is an error. Descriptors are close-on-exec.
//
// Status codes used throughout: kUnavailable = a non-blocking socket would block; kAborted = the
// peer is gone; kDeadlineExceeded = a timeout; kInvalidArgument = the peer's message was refused.
// All functions are thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/os/scoped_handle.h"
#include "broker/os/types.h"

#undef SendMessage  // A macro of windows.h.

namespace sluice::os {

// More descriptors than this never travel in one message.
inline constexpr int kMaxDescriptorsPerMessage = 16;

// Sends one message whole. The descriptors stay the caller's. Never raises SIGPIPE.
absl::Status SendMessage(int socket, const void* data, size_t size, const int* fds = nullptr,
                         int fd_count = 0);

// Receives one message. 0 = end of file, or the peer died. An empty message counts as end of file.
// `fds` (may be null if `max_fds` is 0) is cleared first. The descriptors of a refused or an empty
// message are there too: a caller that must not wait for their closing gives them to
// CloseElsewhere. Where no descriptors are taken, a message with some stays unread, and no other is
// received after it.
absl::StatusOr<size_t> ReceiveMessage(int socket, void* buffer, size_t capacity,
                                      std::vector<UniqueFd>* fds, int max_fds);

// How long after a peer's SendMessage its message may take to be readable here, at most. 0: it is
// there at once. On Windows a read that is under way is completed by the thread that began it.
extern const int kDeliveryMs;

// OK once `socket` can be read or is at its end; kDeadlineExceeded after `timeout_ms` (-1 = none).
absl::Status WaitReadable(int socket, int timeout_ms);

// As WaitReadable without a limit. Like a ReceiveMessage that is under way, it keeps to its
// connection when the descriptor is closed, or its number is used again.
absl::Status AwaitMessage(int socket);

// OK once the other end has hung up. Messages are no hang-up, and stay unread; on Windows the end is
// told once all of them but one have been read.
absl::Status AwaitHangUp(int socket);

// OK once a message can be sent; else as WaitReadable.
absl::Status WaitWritable(int socket, int timeout_ms);

// Ends a connection for both sides, whoever else holds a descriptor of it.
void HangUp(int socket);

// The first end of a pair is given to another process, or stays here. One that stays passes
// descriptors for both ends, wherever the second goes; Windows must know that before the second is
// given away.
enum class FirstEnd { kGiven, kStays };

// Two connected ends, blocking, close-on-exec.
absl::StatusOr<std::pair<UniqueFd, UniqueFd>> CreateSocketPair(FirstEnd first = FirstEnd::kGiven);

// A blocking connection to the socket at `path`. kNotFound: no such file; kUnavailable: nobody
// listens; kPermissionDenied: the socket's mode forbids it; kInvalidArgument: another kind of file.
absl::StatusOr<UniqueFd> ConnectLocal(const std::string& path, int timeout_ms);

// A non-blocking listening socket at `path`, which must not exist, created with exactly `mode`.
absl::StatusOr<UniqueFd> ListenLocal(const std::string& path, mode_t mode, int backlog);

// The next connection of a listening socket; non-blocking and close-on-exec. kUnavailable: none
// yet.
absl::StatusOr<UniqueFd> AcceptLocal(int listener);

absl::Status SetNonBlocking(int fd, bool non_blocking);

// Two connected ends of a stream of bytes, non-blocking, for gRPC. Not on Windows, where gRPC takes
// no such socket.
absl::StatusOr<std::pair<UniqueFd, UniqueFd>> CreateStreamPair();

// Bounds what may lie unread at the other end, where the system lets us.
void LimitUnread(int socket, int bytes);

// From now on nobody can send descriptors to this socket, nor to connections that this listener
// will have. Before Linux 6.16 they can.
void RefuseDescriptors(int socket);

// True for a listening socket of this kind.
bool IsLocalListener(int fd);

// --- names of listening sockets: paths; on Windows names of pipes

// How an endpoint of this machine is written: the scheme, then the name.
extern const char kLocalScheme[];  // "unix:", "pipe:"

// OK if a socket can have this name; else the message says what it must look like.
absl::Status CheckLocalName(const std::string& name);

// True if two names, each of which a socket can have, are the same. Windows' have no case.
bool IsSameLocalName(const std::string& a, const std::string& b);

}  // namespace sluice::os
