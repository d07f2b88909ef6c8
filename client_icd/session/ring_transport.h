// SPDX-License-Identifier: Apache-2.0
// A local session's transport: two rings and the heap's segments in memory shared with the worker,
// and the handle channel (proto/handle_messages.h), over which the descriptors came and whose end
// of file is the session's end. A thread of its own reads that channel. With a network helper
// (network_helper.h) the channel carries no more than the rings, and the session ends with the
// helper's process, for which the thread waits.
//
// Owned by Session. Threads: as transport.h says. The worker may write anything into the shared
// memory at any time: RingReader and SpanPointer check; descriptors are verified (seals, size)
// before they are mapped.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "broker/os/scoped_handle.h"
#include "broker/os/shared_memory.h"
#include "client_icd/session/transport.h"
#include "proto/handle_messages.h"
#include "proto/ring_reader.h"
#include "proto/ring_writer.h"

namespace sluice::client {

class RingTransport : public Transport {
 public:
  // Waits for the worker's RingOffer on the channel, which it takes.
  static absl::StatusOr<std::unique_ptr<RingTransport>> Connect(os::UniqueFd channel,
                                                                int timeout_ms,
                                                                uint64_t max_in_flight);
  // The same with a network helper, which sends no more than that. `await_end` returns when its
  // process has ended; it is called once, on the channel's thread, which does not read the channel.
  // A read that waits would keep it from its end when the application closes it under us.
  static absl::StatusOr<std::unique_ptr<RingTransport>> ConnectToHelper(
      os::UniqueFd channel, int timeout_ms, uint64_t max_in_flight,
      std::function<void()> await_end);
  ~RingTransport() override;

  bool Send(const wire::FrameHeader& header, std::string_view message, std::string_view payload,
            bool wake) override;
  bool Receive(wire::Frame* frame) override;
  bool HasFrame() const override;
  uint32_t Arm(wire::RingSleep state, uint64_t awaited_event) override;
  void Wait(uint32_t ticket, uint32_t bit) override;
  bool Nap(uint32_t ticket, uint32_t bit, int64_t ns) override;
  int64_t rung_ns_untrusted() const override {
    return replies_shared_->rung_ns.load(std::memory_order_relaxed);
  }
  void Interrupt(uint32_t bits) override;
  bool lost() const override { return lost_.load(std::memory_order_acquire); }
  std::string lost_reason() const override;
  void Lose(std::string_view reason) override;
  void LoseInForkedChild() override;
  void ReceiveLastWords() override;
  uint8_t* Map(const wire::BulkSpan& span_untrusted) override;
  bool shares_memory() const override { return heap_ == Heap::kShared; }
  uint64_t max_in_flight() const override { return max_in_flight_; }
  std::vector<os::UniqueFd> TakeDescriptors(uint64_t id) override;
  bool SendHandle(uint64_t token, int fd) override;
  bool InHeap(const void* memory, uint64_t bytes) const override;

 private:
  // Bulk data lies in shared segments, or travels as payload (a network helper's rings).
  enum class Heap { kShared, kNone };

  // The state of the channel's thread, which may run a little longer than the transport.
  struct Channel;

  RingTransport(std::shared_ptr<Channel> channel, const wire::HandleMessage& offer,
                os::SharedMapping commands, os::SharedMapping replies, uint64_t max_in_flight,
                Heap heap);

  static absl::StatusOr<std::unique_ptr<RingTransport>> TakeOffer(std::shared_ptr<Channel> channel,
                                                                  int timeout_ms,
                                                                  uint64_t max_in_flight,
                                                                  Heap heap);

  void LoseAs(std::string_view reason, bool by_end_of_file);

  const std::shared_ptr<Channel> channel_;
  const bool takes_imports_;
  const os::SharedMapping commands_;
  const os::SharedMapping replies_;
  wire::RingShared* const replies_shared_;
  const uint64_t max_in_flight_;
  const Heap heap_;
  wire::RingWriter writer_;  // Serialised by CommandStream's send lock.
  wire::RingReader reader_;  // Serialised by CommandStream's drain lock.

  absl::Mutex handle_mu_;              // One SendHandle at a time.
  bool receiving_last_words_ = false;  // Serialised as reader_.
  std::atomic<bool> lost_{false};      // Release in Lose; pairs with the acquire in lost().
  mutable absl::Mutex mu_;
  std::string lost_reason_ ABSL_GUARDED_BY(mu_);
  bool lost_by_end_of_file_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace sluice::client
