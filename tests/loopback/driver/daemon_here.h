// SPDX-License-Identifier: Apache-2.0
// A daemon in this process, for the real driver library. It has a socket whose thread answers as
// the broker does, with a snapshot of the fake driver's devices, and a real worker's session for
// each client that opens one. A call of the application passes everything that it passes in the
// field, but for the boundaries of processes.
//
// Sessions are never taken down, as in a worker, where only the kernel takes them back.
// Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "broker/os/scoped_handle.h"
#include "daemon/worker/session.h"

namespace sluice::client {

class DaemonHere {
 public:
  // The one of this process, for which SLUICE_ENDPOINT is set: the driver keeps its endpoints.
  static DaemonHere& Get();

  // The limits of the sessions to come.
  void SetLimits(const worker::Limits& limits);
  // Ends all sessions, as a worker's death does. Returns when none calls the driver any more.
  void EndSessions();

 private:
  struct Running;

  DaemonHere();
  void Serve();
  void ServeClient(os::UniqueFd client);
  os::UniqueFd OpenSession();

  std::string path_;
  os::UniqueFd listener_;
  absl::Mutex mu_;
  worker::Limits limits_ ABSL_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<Running>> running_ ABSL_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<Running>> ended_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice::client
