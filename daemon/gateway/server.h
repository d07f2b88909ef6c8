// SPDX-License-Identifier: Apache-2.0
//
// The gateway's gRPC server: sluice.v1.Session, health and reflection, for every address of one
// [[network]] entry. All calls are asynchronous, on one queue that few threads poll. With gRPC's
// polling engine the threads that poll relieve each other, and each relief is a wake-up that a
// command waits for. So there is no synchronous and no callback service here, and health and
// reflection are written by hand.
//
// Owner: main. Thread-safe after Start.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "daemon/gateway/auth.h"
#include "daemon/gateway/broker_link.h"
#include "daemon/gateway/connection_calls.h"
#include "daemon/gateway/front/front.h"
#include "daemon/gateway/options.h"
#include "proto/control.grpc.pb.h"

namespace sluice::gateway {

inline constexpr int kMaxStreamsPerConnection = 64;
// Streams in any state. The broker bounds sessions far below this; streams that never become one
// count here.
inline constexpr int kMaxSessions = 1024;
inline constexpr int kMaxWatches = 128;
inline constexpr int kMaxQuestions = 128;

class GatewayServer {
 public:
  // Only the stream is served by generated code. All other calls are StandardCalls: gRPC would keep
  // a call of a unary method to itself until its message has come.
  using Service = v1::Session::WithGenericMethod_DescribePlatforms<
      v1::Session::WithRawMethod_Stream<v1::Session::Service>>;

  GatewayServer(BrokerLink* link, Authenticator authenticator)
      : link_(link),
        authenticator_(std::make_shared<const Authenticator>(std::move(authenticator))) {}

  // Listens on every address and serves. The error names the address.
  absl::Status Start(const GatewayOptions& options);
  // Refuses new streams and connections, and returns when the sessions that run have ended, or
  // after `grace`.
  void Stop(absl::Duration grace);
  // Other certificates and tokens, for who comes from now on. Keeps those it has if these are bad.
  absl::Status Reload(const TlsFiles& files, Authenticator authenticator);

  Service& service() { return service_; }
  grpc::AsyncGenericService& other_services() { return other_services_; }
  grpc::ServerCompletionQueue* queue() { return queue_.get(); }
  BrokerLink& link() { return *link_; }
  std::shared_ptr<const Authenticator> authenticator() const {
    absl::MutexLock lock(&mu_);
    return authenticator_;
  }
  Front& front() { return *front_; }

  ConnectionCalls& calls() { return calls_; }
  // Sessions, and what else the entry's tokens are asked for.
  CallCount& sessions() { return sessions_; }
  // Of health and reflection, which anybody may call: so many that they keep nobody else out, and
  // the watches, which last, nobody who asks once.
  CallCount& watches() { return watches_; }
  CallCount& questions() { return questions_; }

 private:
  void Poll();

  BrokerLink* const link_;
  const std::unique_ptr<Front> front_ = Front::Create();
  mutable absl::Mutex mu_;
  std::shared_ptr<const Authenticator> authenticator_ ABSL_GUARDED_BY(mu_);
  Service service_;
  grpc::AsyncGenericService other_services_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::vector<std::thread> pollers_;
  ConnectionCalls calls_{kMaxStreamsPerConnection};
  CallCount sessions_{kMaxSessions};
  CallCount watches_{kMaxWatches};
  CallCount questions_{kMaxQuestions};
};

}  // namespace sluice::gateway
