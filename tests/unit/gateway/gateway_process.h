// SPDX-License-Identifier: Apache-2.0
// The real sluice-gateway between a broker and workers that the test plays. The broker answers on a
// thread of its own; a worker is driven by the test.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "broker/os/process.h"
#include "client_icd/remote/remote_transport.h"
#include "proto/command.pb.h"
#include "proto/ring_reader.h"
#include "proto/ring_writer.h"
#include "tests/unit/gateway/ring_memory.h"

namespace sluice::gateway {

// One session's worker.
class PlayedWorker {
 public:
  PlayedWorker(os::UniqueFd channel, std::string peer)
      : channel_(std::move(channel)), peer_(std::move(peer)) {}

  const std::string& peer() const { return peer_; }  // As the gateway named the client.
  void OfferRings();
  void OfferSegment(uint32_t number, const TestMemory& memory, size_t size);
  int channel() const { return channel_.get(); }
  void Die() { channel_.reset(); }

  // The next command; waits for it.
  wire::Frame TakeCommand();
  void Send(const v1::Reply& reply, uint32_t flags = 0, const wire::BulkSpan& bulk = {},
            std::string_view payload = {});
  // Waits until the gateway has closed the handle channel.
  void AwaitClientsEnd();

  wire::RingShared* reply_ring() { return reinterpret_cast<wire::RingShared*>(replies_.data()); }
  // The reply ring has been found full.
  bool was_full() const { return was_full_.load(); }

 private:
  os::UniqueFd channel_;
  const std::string peer_;
  TestMemory commands_{wire::kRingFileBytes};
  TestMemory replies_{wire::kRingFileBytes};
  wire::RingReader reader_{commands_.data()};
  wire::RingWriter writer_{replies_.data()};
  std::atomic<bool> was_full_{false};
};

class GatewayProcess {
 public:
  struct Options {
    std::string certificate, key, client_ca, tokens;  // Contents.
    std::string via;
    int refuse_status = 0;  // An errno value, for every session.
    bool offer_rings = true;
  };

  explicit GatewayProcess(const Options& options);
  GatewayProcess() : GatewayProcess(Options()) {}
  ~GatewayProcess();

  const std::string& endpoint() const { return endpoint_; }
  // The worker of the next session.
  std::unique_ptr<PlayedWorker> TakeWorker();
  // A session and its worker.
  std::pair<std::unique_ptr<client::RemoteTransport>, std::unique_ptr<PlayedWorker>> OpenSession();

  void LoseBroker();
  void TellToEnd();
  void Kill() { process_.KillGroup(); }
  bool HasEnded(int timeout_ms) { return process_.WaitAndReap(timeout_ms).has_value(); }
  uint64_t PeakMemoryBytes() const;

  static constexpr char kSnapshot[] = "the snapshot";
  static constexpr char kRefusal[] = "no more sessions today";

 private:
  void PlayBroker();
  void Answer(const void* packet, size_t size);

  const Options options_;
  std::string endpoint_;
  os::UniqueFd broker_;
  os::ChildProcess process_;
  std::thread broker_thread_;
  absl::Mutex mu_;
  std::deque<std::unique_ptr<PlayedWorker>> workers_ ABSL_GUARDED_BY(mu_);
  uint64_t next_session_ ABSL_GUARDED_BY(mu_) = 1;
};

// Waits for the next reply as an application's thread does.
bool AwaitFrame(client::RemoteTransport* transport, wire::Frame* frame);
// Sends a command whose message is `message`.
bool SendCommand(client::RemoteTransport* transport, uint64_t sequence, std::string_view message,
                 std::string_view payload = {}, uint32_t flags = 0);
v1::Reply AnswerTo(uint64_t sequence, std::string data = "");
// A command and an answer through the whole path, to see that a session still works.
void ExpectWorks(client::RemoteTransport* transport, PlayedWorker* worker, uint64_t sequence);

}  // namespace sluice::gateway
