// SPDX-License-Identifier: Apache-2.0
//
// Orders to the daemon from outside: SIGTERM, SIGINT and SIGHUP; on Windows the console's Ctrl-C,
// Ctrl-Break and closing, and the service manager's stop, shutdown and "read your parameters
// again". Loop thread only.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/statusor.h"

namespace sluice::os {

class StopSignals {
 public:
  enum class Kind { kStop, kReload };

  // On Linux the signals must be blocked in every thread (PrepareDaemonProcess).
  static absl::StatusOr<std::unique_ptr<StopSignals>> Open();
  virtual ~StopSignals() = default;

  virtual int fd() const = 0;  // Readable while Next has something.
  virtual std::optional<Kind> Next() = 0;
};

}  // namespace sluice::os
