// SPDX-License-Identifier: Apache-2.0
//
// The gateway's socket to the broker, and a thread that watches it together with every session's
// handle channel: these are the descriptors on which something rare happens, which must be seen at
// once. Another thread sends: a broker that does not read, stopped perhaps, holds up nobody else.
//
//   GatewayHello -> Welcome [snapshot], again with each new one
//   GatewayOpen  -> SessionOpened [handle channel]
//   CloseSession
//   Terminate; GatewayFiles [files]
//
// They are in proto/broker_messages.h.
//
// Owner: main. Thread-safe after Start. The broker is trusted.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "broker/os/poller.h"
#include "broker/os/scoped_handle.h"
#include "proto/broker_messages.h"
#include "proto/network/signed_token.h"

namespace sluice::gateway {

// Something with a descriptor that the link's thread watches, for as long as OnReadable returns
// true.
class Watched {
 public:
  virtual ~Watched() = default;
  virtual int fd() const = 0;
  // Link thread. Must not block: called when there is something to read, or the end of file.
  virtual bool OnReadable() = 0;
};

enum class BrokerEnd {
  kGone,       // The broker is: nobody gives sessions any more.
  kToldToEnd,  // It wants this process gone.
};

class BrokerLink {
 public:
  // Says hello on `socket` and waits for the broker's welcome.
  static absl::StatusOr<std::unique_ptr<BrokerLink>> Connect(os::UniqueFd socket,
                                                             absl::Duration timeout);

  // The newest: the broker sends another Welcome whenever a probe has ended.
  struct Snapshot {
    std::string bytes;
    std::string message;  // Why there are none, if there are none.
  };
  Snapshot snapshot() const {
    absl::MutexLock lock(&mu_);
    return snapshot_;
  }

  // Starts the threads, which run for the rest of the process's life. Both are called on the one
  // that watches. `on_files`: of GatewayFiles.
  absl::Status Start(std::function<void(BrokerEnd)> on_end,
                     std::function<void(uint32_t files, std::vector<os::UniqueFd>)> on_files);

  struct Session {
    uint64_t id = 0;
    os::UniqueFd channel;
    uint64_t max_in_flight = 0;  // 0: no limit.
  };
  // Asks for a session and waits for it. The error is what to tell the client. `terms`: of the
  // signed token that the client has shown.
  absl::StatusOr<Session> OpenSession(uint32_t flags, const std::string& peer,
                                      const std::string& process_name, absl::Duration timeout,
                                      const std::optional<wire::TokenTerms>& terms = {});

  // That one of them is over, and its worker must end soon, whatever it is doing. Nothing if the
  // broker is gone. Never waits.
  void CloseSession(uint64_t id);

  // After Start; not on the link's thread.
  absl::Status Watch(std::shared_ptr<Watched> watched);

 private:
  struct Request {
    bool done = false;
    absl::StatusOr<Session> result = absl::UnknownError("");
  };

  struct Outgoing {
    uint64_t request_id = 0;  // Of a GatewayOpen.
    std::string bytes;
  };

  struct NewWatch {
    std::shared_ptr<Watched> watched;
    bool done = false;
    absl::Status status;
  };

  BrokerLink(os::UniqueFd socket, Snapshot snapshot)
      : socket_(std::move(socket)), snapshot_(std::move(snapshot)) {}

  static absl::StatusOr<Snapshot> ReadSnapshot(const wire::Welcome& welcome,
                                               std::vector<os::UniqueFd>& fds);

  // Link thread.
  void Run();
  void AddNewWatches();
  bool OnBrokerReadable();  // False: the broker is gone.
  void OnBrokerGone();

  // Sender thread.
  void RunSender();

  template <typename T>
  void SendLocked(uint64_t request_id, const T& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    outgoing_.push_back({request_id, {reinterpret_cast<const char*>(&message), sizeof(message)}});
    outgoing_added_.Signal();
  }

  const os::UniqueFd socket_;
  // Constant after Start; but for Wake, the poller is the link thread's.
  std::unique_ptr<os::Poller> poller_;
  std::function<void(BrokerEnd)> on_end_;
  std::function<void(uint32_t files, std::vector<os::UniqueFd>)> on_files_;

  // Link thread only.
  uint64_t next_watch_ = 2;  // 1 is the broker's socket.
  absl::flat_hash_map<uint64_t, std::shared_ptr<Watched>> watched_;

  mutable absl::Mutex mu_;
  absl::CondVar answered_;
  Snapshot snapshot_ ABSL_GUARDED_BY(mu_);
  bool gone_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t next_request_ ABSL_GUARDED_BY(mu_) = 1;
  absl::flat_hash_map<uint64_t, Request*> requests_ ABSL_GUARDED_BY(mu_);
  std::vector<NewWatch*> new_watches_ ABSL_GUARDED_BY(mu_);
  // At most a message for each session and for each that asks for one.
  std::deque<Outgoing> outgoing_ ABSL_GUARDED_BY(mu_);
  absl::CondVar outgoing_added_;
};

}  // namespace sluice::gateway
