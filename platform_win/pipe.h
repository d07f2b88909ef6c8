// SPDX-License-Identifier: Apache-2.0
//
// One end of a named pipe in message mode: what a SOCK_SEQPACKET socket is elsewhere. A message is
// whole or not at all; handles travel with it.
//
// Handles. Of the two ends one may duplicate into and out of the other's process, and does it all;
// the other only names handles of its own. Which one it is, is fixed when the pipe is made:
//
//   client - broker   the broker, which opened the client's process when it accepted
//   broker - child    the broker, which has started the child
//   client - worker   the client, whom the broker gives the worker's process (see README)
//   resource client - broker   the broker, whose end stays where it is (FirstEnd::kStays)
//
// A peer that names handles and has not the right to decide where they are (`kInReceiver` from one
// that the receiver is to pull from) breaks the protocol. A handle that is pulled from a peer is
// checked: it is no pseudo handle, and of the type that it is said to be.
//
// One read is always in flight while somebody waits for the pipe, which is how it gets an event to
// wait for; so an end must not be read by two processes. Thread-safe.
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

// Both ends of a pair were made here; whose process each is in now.
struct PipePair {
  std::mutex mutex;
  OwnedHandle holder[2];     // Null: this process.
  bool first_stays = false;  // Set when it is made: side 0 is this process's for ever.
};

// The peer at the other end of a connection that was accepted.
struct PipePeer {
  OwnedHandle process;  // PROCESS_DUP_HANDLE, SYNCHRONIZE and to be asked about.
  uid_t user = 0;
  pid_t pid = -1;
};

// A pipe from a child, or from this process's own code: (read end, for a PipeEnd; write end, for
// whoever knows only files). `mode`: PIPE_TYPE_... and PIPE_READMODE_...
absl::StatusOr<std::pair<OwnedHandle, OwnedHandle>> CreateOneWayPipe(DWORD mode, DWORD bytes);

class PipeEnd final : public HandleObject {
 public:
  // What one read of a pipe of bytes gives, at most.
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

  // One message's bytes, without handles, or what a pipe of bytes holds. The greeting of a
  // connection; output.
  absl::StatusOr<std::string> ReceiveRaw(bool may_block);
  absl::Status SendRaw(std::string bytes);
  // Sends that block give up after this, with kDeadlineExceeded: who has made a pipe without room
  // has each of them wait for its reader.
  void LimitSends(DWORD limit_ms) { send_limit_ms_ = limit_ms; }

  HANDLE PrepareWait() override;
  // Null if it can be written to now.
  HANDLE PrepareWriteWait();

  // As HangUp in local_socket.h: from now on this end is at its end, for the other side too.
  void HangUp();

  // Set at accept.
  const PipePeer& peer() const { return peer_; }

  // Says that the other process has this end from now on (a pair's only).
  void GoneTo(HANDLE process);
  // The process that has the other end, as far as this one knows and may duplicate into it.
  OwnedHandle OtherProcess() const;
  // The other end is this process's for ever: whoever gets this one needs nobody's process.
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
