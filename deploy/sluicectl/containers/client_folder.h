// SPDX-License-Identifier: Apache-2.0
//
// The client's files, as they are given to a container: which there are, where this sluicectl finds
// them, and what they ask of the container. Thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace sluice::ctl {

// Where the folder lies in a container, and what its .icd file names there.
inline constexpr char kContainerClientFolder[] = "/usr/lib/sluice-client";
// The clients' socket folder, on the host and in a container.
inline constexpr char kClientSocketFolder[] = "/run/sluice/clients";
inline constexpr char kContainerIcdFile[] = "/etc/OpenCL/vendors/sluice.icd";

inline constexpr char kDriverFile[] = "libsluice_icd.so";
inline constexpr char kIcdFile[] = "sluice.icd";
// The licences of what a self-contained client has inside.
inline constexpr char kCopyrightFile[] = "copyright.txt";
// No .icd file, which holds one line, is longer.
inline constexpr size_t kMaxIcdBytes = 64 << 10;

struct ClientFile {
  std::string name;  // In the folder, "sluice/libsluice_remote.so" say.
  std::string path;  // Its place now.
  bool program = false;
};

struct ClientFiles {
  std::string folder;             // The folder they were found in.
  bool self_contained = false;    // They need glibc alone.
  std::string glibc;              // The oldest glibc that has all they need, "2.31".
  std::vector<ClientFile> files;  // The driver first, a copyright file last.
  std::vector<std::string> warnings;
};

// The names of all files that a whole client has.
std::vector<std::string> AllClientFileNames();

// The files in `from`; without it in PREFIX/lib/sluice-client, else the libraries that belong to
// this sluicectl.
absl::StatusOr<ClientFiles> FindClientFiles(const std::string& from);

}  // namespace sluice::ctl
