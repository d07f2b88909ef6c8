// SPDX-License-Identifier: Apache-2.0
//
// The files of another process, as it sees them: its root, its mounts. They are not trusted: no
// link leads out of its root, and nothing but a regular file is read. Thread-compatible.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "broker/os/scoped_handle.h"

namespace sluice::ctl {

class OtherRoot {
 public:
  // kPermissionDenied: this user may not look at that process. kNotFound: there is no such process.
  static absl::StatusOr<OtherRoot> Open(pid_t pid);

  // A descriptor for paths alone (O_PATH), or for reading.
  absl::StatusOr<os::UniqueFd> Find(const std::string& path) const;
  absl::StatusOr<os::UniqueFd> OpenFile(const std::string& path) const;
  absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes) const;
  // The names in a folder, sorted; empty if there is none.
  std::vector<std::string> List(const std::string& folder) const;
  bool Has(const std::string& path) const { return Find(path).ok(); }

  // Its environment when it was started.
  std::string Variable(const std::string& name) const;
  // The program that it runs.
  absl::StatusOr<os::UniqueFd> Program() const;
  // True if it has the same root and mounts as this process.
  bool IsOurs() const { return ours_; }

 private:
  OtherRoot(pid_t pid, os::UniqueFd root) : pid_(pid), root_(std::move(root)) {}
  void ReadEnvironment();

  pid_t pid_;
  os::UniqueFd root_;
  bool ours_ = false;
  std::map<std::string, std::string> environment_;
};

}  // namespace sluice::ctl
