// SPDX-License-Identifier: Apache-2.0
//
// The state that all connections of a front share: the limiter of connections, their peers, the certificates, the
// log.
//
// Owner: LinuxFront. Thread-safe.
#pragma once

#include <grpcpp/server.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "daemon/gateway/front/admitted_peer.h"
#include "daemon/gateway/front/budget.h"
#include "daemon/gateway/front/connection_limiter.h"
#include "daemon/gateway/front/http2_gate.h"
#include "platform_linux/gateway/tls.h"

namespace sluice::gateway {

int64_t MonotonicMs();

class Connection;

// One connection as calls know it.
struct PeerRecord {
  AdmittedPeer peer;                                // Constant once it is in the table.
  std::unique_ptr<ConnectionLimiter::Place> place;  // Constant; its own locks.
  std::atomic<bool> known{false};                   // It is authenticated.

  absl::Mutex mu;                    // Held while the connection is served.
  Connection* connection = nullptr;  // Guarded by mu. While gRPC has it.
};

// Peers by the number of gRPC's descriptor, by which gRPC names them ("fd:7"). gRPC keeps the
// descriptor as long as one of its calls lives, so that the number is not another's.
class PeerTable {
 public:
  void Add(int number, std::shared_ptr<PeerRecord> record);
  void Remove(const PeerRecord* record);
  std::shared_ptr<PeerRecord> Find(const std::string& grpc_peer) const;

 private:
  mutable absl::Mutex mu_;
  std::map<int, std::shared_ptr<PeerRecord>> records_ ABSL_GUARDED_BY(mu_);
};

// Logs refused strangers: a few lines a second, with a count of those left out.
class FrontLog {
 public:
  void Refused(const std::string& address, std::string_view why);

 private:
  absl::Mutex mu_;
  int64_t second_ ABSL_GUARDED_BY(mu_) = 0;
  int lines_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t left_out_ ABSL_GUARDED_BY(mu_) = 0;
};

struct FrontState {
  explicit FrontState(const FrontOptions& options)
      : limiter(options.limits),
        plaintext(options.tls.certificate.empty()),
        asks_for_tokens(options.asks_for_tokens) {}

  std::shared_ptr<const TlsContext> tls() const {
    absl::MutexLock lock(&mu);
    return tls_context;
  }

  // True if anybody may come: then gRPC gets the clients' own sockets.
  bool gives_sockets() const { return plaintext && !asks_for_tokens; }

  ConnectionLimiter limiter;
  SharedBudget calls{kSharedCalls};
  PeerTable peers;
  FrontLog log;
  const bool plaintext;
  const bool asks_for_tokens;
  grpc::Server* server = nullptr;  // Constant once connections come.

  mutable absl::Mutex mu;
  std::shared_ptr<const TlsContext> tls_context ABSL_GUARDED_BY(mu);
};

}  // namespace sluice::gateway
