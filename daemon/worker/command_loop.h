// SPDX-License-Identifier: Apache-2.0
// The session thread: takes commands from the ring in the order sent, hands each to its handler,
// sends the answers. It never waits for anything but the next command; queues that were touched are
// flushed when the ring runs dry. Everything it reads is hostile; the reader has copied and framed
// it, this parses the copy.
#pragma once

#include <atomic>

#include "absl/status/status.h"
#include "daemon/worker/call.h"
#include "daemon/worker/queues/end_forecast.h"
#include "daemon/worker/session.h"
#include "proto/command.pb.h"
#include "proto/ring_reader.h"
#include "proto/spin.h"

namespace sluice::worker {

class CommandLoop {
 public:
  CommandLoop(Session* session, uint8_t* command_ring)
      : session_(session), reader_(command_ring, MaxFrameBytes(session->options().limits)) {
    session->replies().set_on_violated([this] { reader_.Interrupt(wire::kBitWaiter); });
  }

  // Returns only when the client has broken the protocol: the violation; or after Stop: OK.
  absl::Status Run();
  // Any thread.
  void Stop() {
    stopped_.store(true, std::memory_order_release);
    reader_.Interrupt(wire::kBitWaiter);
  }

  // A frame is a program at most, or a command with the bytes that go with it: data moves in
  // chunks.
  static uint64_t MaxFrameBytes(const Limits& limits);

  // One frame, for Run, tests and the fuzzer. An error is a violation.
  absl::Status HandleFrame(wire::Frame& frame);

 private:
  void AnswerTooLarge(uint64_t sequence);
  absl::Status Idle();
  bool stopped() const { return stopped_.load(std::memory_order_acquire); }
  void Poll();
  // Looks after the driver's events itself (completions.h) until a command comes.
  void PollUntilCommand();

  Session* const session_;
  wire::RingReader reader_;
  std::atomic<bool> stopped_ = false;
  uint64_t last_sequence_ = 0;
  wire::AdaptiveSpin spin_;
  EndForecast forecast_;
  Completions::Polled polled_;  // By the last Poll,
  int64_t polled_ns_ = 0;       // and when that was.
};

}  // namespace sluice::worker
