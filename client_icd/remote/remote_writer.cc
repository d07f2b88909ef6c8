// SPDX-License-Identifier: Apache-2.0
// RemoteTransport's half that sends.
#include <new>

#include "broker/os/threads.h"
#include "client_icd/remote/remote_transport.h"
#include "proto/spin.h"

namespace sluice::client {
namespace {

// Sends closer together than this, and more of them than an ordinary call makes, are a burst.
constexpr int64_t kBurstGapNs = 20'000;
constexpr int kBurstSends = 4;
constexpr size_t kMaxQuietBytes = 64 << 10;
constexpr size_t kMaxBurstBytes = 256 << 10;
constexpr size_t kMaxOutboxBytes = 2 << 20;
// How often the writer looks during a burst, and how often in vain before it goes to sleep.
constexpr int64_t kWriterPeriodNs = 25'000;
constexpr int kWriterPatience = 8;
constexpr int64_t kWritePollNs = 1'000'000;

}  // namespace

bool RemoteTransport::Send(const wire::FrameHeader& header, std::string_view message,
                           std::string_view payload, bool wake) {
  if (lost()) return false;
  try {
    outbox_.Append(header, message, payload);
  } catch (const std::bad_alloc&) {
    // The bytes before it may be half a frame.
    Lose("this process has no memory left to send from");
    return false;
  }
  const size_t waiting = outbox_.bytes();
  if (!wake && waiting < kMaxQuietBytes) return true;
  const int64_t now = wire::MonotonicNs();
  const bool close = now - last_send_ns_.load(std::memory_order_relaxed) < kBurstGapNs;
  last_send_ns_.store(now, std::memory_order_relaxed);
  const int burst = close ? burst_.fetch_add(1, std::memory_order_relaxed) + 1 : 0;
  if (!close) burst_.store(0, std::memory_order_relaxed);
  if (has_network_thread_ || burst < kBurstSends || waiting > kMaxBurstBytes) Push();
  if (!has_network_thread_ && (outbox_.bytes() > 0 || outbox_.writing())) RequestWriter();
  if (outbox_.bytes() > kMaxOutboxBytes) AwaitRoom();
  return !lost();
}

// The peer takes no more for the moment.
void RemoteTransport::AwaitRoom() {
  while (outbox_.bytes() > kMaxOutboxBytes / 2 && !lost()) {
    Push();
    if (!TryPoll(kWritePollNs)) outbox_.AwaitWritten(absl::Milliseconds(1));
  }
}

void RemoteTransport::RequestWriter() {
  if (writer_busy_.load(std::memory_order_seq_cst)) return;
  absl::MutexLock lock(&writer_mu_);
  writer_requested_ = true;
  if (writer_runs_ || writer_stops_) {
    writer_wake_.SignalAll();
    return;
  }
  // Without a thread to be had, what is sent next or the next wait takes it along.
  writer_runs_ = os::StartThread("sluice-writer", [this] { RunWriter(); });
}

void RemoteTransport::RunWriter() {
  os::AskForPreciseSleeps();
  absl::MutexLock lock(&writer_mu_);
  while (!writer_stops_ && !lost()) {
    if (!writer_requested_) {
      writer_wake_.Wait(&writer_mu_);
      continue;
    }
    writer_requested_ = false;
    writer_busy_.store(true, std::memory_order_seq_cst);
    writer_mu_.Unlock();
    for (int quiet = 0; quiet < kWriterPatience && !lost(); ++quiet) {
      if (outbox_.bytes() > 0 || outbox_.writing()) quiet = 0;
      Flush();
      if (!outbox_.writing() || !TryPoll(kWritePollNs)) os::SleepNs(kWriterPeriodNs);
    }
    writer_busy_.store(false, std::memory_order_seq_cst);
    writer_mu_.Lock();
    // Frames that were appended before the store above have not asked for us.
    if (outbox_.bytes() > 0 || outbox_.writing()) writer_requested_ = true;
  }
  writer_runs_ = false;
  writer_wake_.SignalAll();
}

}  // namespace sluice::client
