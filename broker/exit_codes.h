// SPDX-License-Identifier: Apache-2.0
// The exit codes of sluiced. Windows' service manager keeps them as the service's own.
#pragma once

namespace sluice::broker {

inline constexpr int kDaemonExitOk = 0;
inline constexpr int kDaemonExitFailed = 1;
inline constexpr int kDaemonExitUsage = 2;  // A wrong flag or configuration.
inline constexpr int kDaemonExitAlreadyRunning = 3;

}  // namespace sluice::broker
