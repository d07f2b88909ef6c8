// SPDX-License-Identifier: Apache-2.0
//
// sluicectl's exit codes, as --help and README list them. Scripts rely on them: they never change
// meaning. `run` ends with its command's own code; 125 to 127 are its own failures, as env(1) has
// them.
#pragma once

namespace sluice::ctl {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;        // The command failed; doctor: something is wrong.
inline constexpr int kExitUsage = 2;         // Wrong flags.
inline constexpr int kExitNoDaemon = 3;      // The daemon cannot be reached.
inline constexpr int kExitNoSession = 4;     // kill, listener remove: there is no such one.
inline constexpr int kExitRunFailed = 125;   // run: sluicectl itself failed.
inline constexpr int kExitCannotExec = 126;  // run: the command cannot be executed.
inline constexpr int kExitNotFound = 127;    // run: there is no such command.
inline constexpr int kExitSignalBase = 128;  // run: the command was killed by signal code - 128.

}  // namespace sluice::ctl
