// SPDX-License-Identifier: Apache-2.0
//
// Limits the host's files that a child of the broker's can reach. A client's sources may include
// any path, and its kernels may open any on a CPU device; a gateway or a driver may be taken over
// by what it parses. So the system (landlock, Linux 5.13) lets each child see the files that it is
// made of, and no others (worker_files.h, helper_files.h). Where it can, it denies TCP ports,
// abstract Unix sockets and signals to processes outside as well.
//
// Holds for the calling thread and for what it starts later: call before there are other threads.
// Trusts its arguments, which are the operator's; not what lies below the writable folders, where
// another process that was confined to them may have put links.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace sluice::os {

struct FileAccess {
  // Files and folders; a folder stands for all below it. Paths that do not exist are left out. No
  // link below a writable folder is followed.
  std::vector<std::string> readable;
  std::vector<std::string> executable;  // And readable. Nothing else can be run.
  std::vector<std::string> writable;    // And readable.
  std::vector<std::string> devices;     // Device nodes, or folders of them: read, write, ioctl.
  // Of TCP, of whatever address, where the kernel knows ports (Linux 6.7); no others.
  std::vector<uint16_t> listen_ports;
  std::vector<uint16_t> connect_ports;
};

// The version of the kernel's interface; 0 if it has none, or it is switched off.
int FileConfinementVersion();

// Why this system's workers can read whatever their user can; "" if they are confined.
std::string UnconfinedReason();

// kUnavailable if the kernel has no such thing; then nothing is confined.
absl::Status ConfineFiles(const FileAccess& access);

}  // namespace sluice::os
