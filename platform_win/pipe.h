// SPDX-License-Identifier: Apache-2.0
//
// One end of a named pipe in message mode, which stands for Linux's SOCK_SEQPACKET socket. A
// message arrives whole or not at all; handles travel with it.
//
// Handles. One of the two ends may duplicate into and out of the other's process, and does so both
// ways; the other only names handles of its own. The pipe's maker decides which end duplicates:
//
//   client - broker   the broker, which opened the client's process when it accepted
//   broker - child    the broker, which has started the child
//   client - worker   the client, whom the broker gives the worker's process (see README)
//   resource client - broker   the broker, whose end stays where it is (FirstEnd::kStays)
//
// Only the end that duplicates may say that handles are in the receiver's process (`kInReceiver`);
// from the other end that breaks the protocol. A handle that is pulled from a peer is checked: it
// must be no pseudo handle, and of the type that the message says.
//
// A wait for the pipe keeps one read in flight, whose event it waits for; so two processes must not
// read the same end. Thread-safe.
#pragma once

#include <windows.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/os/types.h"
#include "platform_win/handles/handle_table.h"

namespace sluice::os {

// A pair of ends made here, with the process that each is in now.
struct PipePair {
  std::mutex mutex;
  OwnedHandle holder[2];     // Null: this process.
  bool first_stays = false;  // Set when it is made: side 0 stays in this process.
};

// The peer at the other end of a connection that was accepted.
struct PipePeer {
  OwnedHandle process;  // With PROCESS_DUP_HANDLE, SYNCHRONIZE and the right to query it.
  uid_t user = 0;
  pid_t pid = -1;
};

// A pipe from a child, or from this process's own code: (read end, for a PipeEnd; write end, for
// code that knows only files). `mode`: PIPE_TYPE_... and PIPE_READMODE_...
absl::StatusOr<std::pair<OwnedHandle, OwnedHandle>> CreateOneWayPipe(DWORD mode, DWORD bytes);

class PipeEnd final : public HandleObject {
 public:
  // The most that one read of a pipe of bytes returns.
  static constexpr size_t kReadBytes = 4096;

  // Of a pair that was made here.
  PipeEnd(OwnedHandle pipe, std::shared_ptr<PipePair> pair, int side);
  // With the other end's process, which the caller may duplicate into.
  PipeEnd(OwnedHandle pipe, PipePeer peer);
  // Its other end duplicates.
  explicit PipeEnd(OwnedHandle pipe);
  ~PipeEnd() override;

  void SetNonBlocking(bool non_blocking) { non_blocking_ = non_blocking; }
  bool non_blocking() const { return non_blocking_; }

  // As SendMessage and ReceiveMessage in broker/os/local_socket.h.
  absl::Status Send(const void* data, size_t size,
                    const std::vector<std::shared_ptr<HandleObject>>& objects);
  absl::StatusOr<size_t> Receive(void* buffer, size_t capacity, int max_objects,
                                 std::vector<std::shared_ptr<HandleObject>>* objects);

  // One message's bytes, without handles, or the bytes that a pipe holds. For the greeting of a
  // connection, and for output.
  absl::StatusOr<std::string> ReceiveRaw(bool may_block);
  absl::Status SendRaw(std::string bytes);
  // Blocking sends give up after this, with kDeadlineExceeded. A peer that made a pipe without
  // buffer makes each of them wait for its reader.
  void LimitSends(DWORD limit_ms) { send_limit_ms_ = limit_ms; }

  HANDLE PrepareWait() override;
  // Null if it can be written to now.
  HANDLE PrepareWriteWait();

  // True once the other end is closed, and what waits here is the last message at most.
  bool OtherHasHungUp();
  // As HangUp in local_socket.h: from now on both ends are at their end of file.
  void HangUp();

  // Set at accept.
  const PipePeer& peer() const { return peer_; }

  // Says that the other process has this end from now on (a pair's only).
  void MovedTo(HANDLE process);
  // The process that has the other end, as far as this one knows and may duplicate into it.
  OwnedHandle OtherProcess() const;
  // True if the other end stays in this process: then whoever gets this one does not need the
  // other's process.
  bool OtherEndStays() const { return pair_ != nullptr && pair_->first_stays && side_ == 1; }

 private:
  enum class ReadState { kIdle, kPending, kEnd };

  bool duplicates() const { return pair_ != nullptr || peer_.process.valid(); }
  void StartRead();  // With read_mutex_ held.
  absl::StatusOr<std::string> FinishRead(DWORD bytes, bool more);

  const std::shared_ptr<PipePair> pair_;
  const int side_ = 0;
  const PipePeer peer_;
  std::atomic<bool> non_blocking_ = false;
  std::atomic<bool> hung_up_ = false;
  std::atomic<DWORD> send_limit_ms_ = INFINITE;

  std::mutex read_mutex_;
  OVERLAPPED read_ = {};
  OwnedHandle read_event_;
  ReadState read_state_ = ReadState::kIdle;
  std::vector<char> read_buffer_;

  std::mutex write_mutex_;
  OVERLAPPED write_ = {};
  OwnedHandle write_event_;
  bool write_pending_ = false;
  std::string write_buffer_;
};

}  // namespace sluice::os
