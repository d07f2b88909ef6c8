// SPDX-License-Identifier: Apache-2.0
//
// `sluicectl run`: runs a program whose OpenCL loader sees Sluice and no other driver. Nothing on
// the system changes: a temporary directory holds an .icd file, and environment variables point
// there. Main thread only.
#pragma once

#include <string>
#include <vector>

namespace sluice::ctl {

struct RunFlags {
  bool private_daemon = false;
  bool verbose = false;
  bool json = false;  // How it ended, on stderr.
  std::string endpoint;
  std::string config_file;
  bool child_signals_ignored = false;  // By who started us: the command is to find it so.
  std::string icd_library;             // "" = the one that belongs to this sluicectl.
  std::vector<std::string> command;
};

// The command's exit code, 128 + signal if it was killed, or one of ours (exit_codes.h).
int RunCommand(const RunFlags& flags);

}  // namespace sluice::ctl
