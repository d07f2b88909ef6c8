// SPDX-License-Identifier: Apache-2.0
// One client of this process: its rings and session, and what a worker and the broker say to each
// other about that on the session's control socket. A worker of its own has one, made once and never
// destroyed (worker_main.cc); a pool has many (pool/).
//
// Thread-compatible: made and used by the main thread. Functions for other threads say so.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/os/scoped_handle.h"
#include "broker/os/shared_memory.h"
#include "daemon/worker/command_loop.h"
#include "daemon/worker/session.h"
#include "proto/broker_messages.h"

namespace sluice::worker {

// A line for the broker's log. The broker may be gone: then nothing. Any thread.
void Notice(int control, wire::WorkerNoticeKind kind, std::string_view text);

class ServedClient {
 public:
  // The descriptors stay the caller's and outlive this.
  static absl::StatusOr<std::unique_ptr<ServedClient>> Create(const SessionOptions& options,
                                                              int channel, int control);

  Session& session() { return *session_; }
  CommandLoop& loop() { return *loop_; }

  // Attaches the account's grant to the session before its first command, if the account's device
  // memory has a limit.
  void AttachGrant();
  // Gives the client its rings. kAborted: it has left meanwhile.
  absl::Status OfferRings();
  // After that, to a broker that wants to know.
  void SayReady() const;

  // Any thread.
  void TellEnd(std::string_view reason);

  // One message of the broker.
  struct Control {
    bool gone = false;                     // No message: the broker is.
    std::optional<std::string> terminate;  // It ends the session, and says why.
  };
  Control OnControl();

 private:
  ServedClient(int channel, int control) : channel_(channel), control_(control) {}
  void SendStats();
  void SendShadowStats();

  struct Ring {
    os::UniqueFd file;
    os::SharedMapping mapping;
  };
  static absl::StatusOr<Ring> MakeRing(const char* name);

  const int channel_;
  const int control_;
  Ring commands_;
  Ring replies_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<CommandLoop> loop_;  // Of the session: goes before it.
};

}  // namespace sluice::worker
