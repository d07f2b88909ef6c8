// SPDX-License-Identifier: Apache-2.0
// A command whose end the stream awaits: what replies need of an event, and no more of it. The
// stream finds it by the event's id and ends it; events are objects, which sit above the session.
//
// A member of the event that it stands for (`owner`): it lives as long, and the stream keeps the
// event while it tracks the command. Thread-safe as each member says.
#pragma once

#include <CL/cl.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "client_icd/base/host_region.h"
#include "client_icd/base/object.h"

namespace sluice::client {

class PendingCommand {
 public:
  // Which way the application's memory of a command's transfer is used.
  enum class Direction { kNone, kFromHost, kToHost };

  PendingCommand(const PendingCommand&) = delete;
  PendingCommand& operator=(const PendingCommand&) = delete;

  Object* owner() const { return owner_; }
  uint64_t id() const { return owner_->id(); }

  // Once true, status() is CL_COMPLETE or an error.
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  const std::atomic<bool>& ended_flag() const { return ended_; }

  // Set before the command is posted, constant until it has ended.
  Direction direction() const { return direction_; }
  const HostRegion& region() const { return region_; }
  void SetTransfer(Direction direction, const HostRegion& region) {
    direction_ = direction;
    region_ = region;
  }
  // The call that enqueues the command waits for it, and answers with its error.
  bool answered() const { return answered_; }
  void SetAnswered() { answered_ = true; }
  // The application gets the event, which then tells it how the command has ended.
  bool given() const { return given_; }
  void SetGiven() { given_ = true; }

  // CL_COMMAND_*.
  virtual cl_command_type type() const = 0;
  virtual cl_int status() const = 0;
  // A user event that the termination of its context leaves for the application to end.
  virtual bool StaysOpen() const = 0;
  // Once. Does not wake waiters: the stream does, once it has handled all that was there.
  virtual void End(cl_int status, absl::Span<const uint64_t> profiling) = 0;

 protected:
  explicit PendingCommand(Object* owner) : owner_(owner) {}
  ~PendingCommand() = default;

  // Sequentially consistent; pairs with the acquire in ended(). Follows status and profiling.
  void SetEnded() { ended_.store(true, std::memory_order_seq_cst); }

 private:
  Object* const owner_;
  Direction direction_ = Direction::kNone;
  bool answered_ = false;
  bool given_ = false;
  HostRegion region_;
  std::atomic<bool> ended_{false};
};

// For what the worker reports of a context or a queue without being asked. Called where replies
// are handled: must not wait, must not call the application.
class ReplyListener {
 public:
  // For a queue: one of its commands was refused after the call had returned. `event_id`: of its
  // event, if the application has it; else 0.
  virtual void OnLateError(const std::string& /*call*/, cl_int /*status*/, uint64_t /*event_id*/) {}
  // For a context: its pfn_notify is told this.
  virtual void OnNotify(const std::string& /*message*/, const std::string& /*private_info*/) {}
  // For a context: a creation that nobody waited for has failed.
  virtual void OnCreationFailed(const std::string& /*call*/, cl_int /*status*/) {}
  // For a context: everything pending has failed.
  virtual void OnSessionLost(const std::string& /*message*/) {}

 protected:
  ~ReplyListener() = default;
};

}  // namespace sluice::client
