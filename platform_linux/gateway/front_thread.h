// SPDX-License-Identifier: Apache-2.0
//
// A front's threads. Each serves connections of its own, and waits for nothing but events and the
// times at which connections are due. One kind is at the door: it accepts connections, does TLS's
// handshakes, and hands on those that are past the preface. It gives way to all other threads
// (nice), so that no crowd of newcomers delays admitted clients. The other kind, inside, serves
// these until they end.
//
// Owner: LinuxFront. Its methods are thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "broker/os/scoped_handle.h"
#include "platform_linux/gateway/connection.h"
#include "platform_linux/gateway/front_state.h"

namespace sluice::gateway {

class FrontThread {
 public:
  // Both run until the process ends.
  static absl::StatusOr<FrontThread*> StartInside(FrontState* front);
  // `listeners` stay the caller's, until StopListening has returned.
  static absl::StatusOr<FrontThread*> StartAtDoor(FrontState* front,
                                                  const std::vector<int>& listeners,
                                                  std::vector<FrontThread*> inside);

  void StopListening();
  // Ends connections whose certificate the front's present files do not let in.
  void Recheck();

 private:
  struct Listener : EventSource {
    int fd = -1;
  };

  FrontThread(FrontState* front, os::UniqueFd epoll, os::UniqueFd wake)
      : front_(front), epoll_(std::move(epoll)), wake_(std::move(wake)), scratch_(kScratchBytes) {}

  static absl::StatusOr<FrontThread*> Create(FrontState* front);
  [[noreturn]] void Run();
  void TakeNew();
  void HandOn(Connection* connection);
  void TakeOrders();
  bool Listen(bool on);
  void Accept(const Listener& listener);
  void TakeIn(os::UniqueFd socket, std::string address);
  void Serve(Connection* connection);
  void ServeDue();
  void Queue(Connection* connection, int64_t due_ms);
  void End(Connection* connection);
  int MillisecondsToNext() const;

  static constexpr size_t kScratchBytes = 128 * 1024;

  FrontState* const front_;
  const os::UniqueFd epoll_;
  const os::UniqueFd wake_;

  // Used on the thread only.
  std::vector<char> scratch_;
  std::vector<FrontThread*> inside_;  // At the door: it hands connections to these in turn.
  size_t next_inside_ = 0;
  std::list<Listener> listeners_;
  bool stopped_listening_ = false;
  int64_t listens_again_ms_ = 0;  // Accepts again then: it had no descriptor left.
  std::list<std::unique_ptr<Connection>> connections_;
  std::set<std::pair<int64_t, Connection*>> due_;
  std::vector<std::unique_ptr<Connection>> ended_;  // Kept to the turn's end: events name them.
  int64_t now_ms_ = 0;

  absl::Mutex mu_;
  std::vector<std::unique_ptr<Connection>> new_ ABSL_GUARDED_BY(mu_);
  bool told_to_stop_listening_ ABSL_GUARDED_BY(mu_) = false;
  bool listens_no_more_ ABSL_GUARDED_BY(mu_) = false;
  bool told_to_recheck_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace sluice::gateway
