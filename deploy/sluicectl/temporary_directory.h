// SPDX-License-Identifier: Apache-2.0
//
// The folder of one `sluicectl run`: only this user can enter it, and it goes with its contents,
// even if sluicectl is killed: a child process, which nothing but SIGKILL ends, waits for that. The
// main thread only, and before there are others: it forks.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "broker/os/scoped_handle.h"

namespace sluice::ctl {

class TemporaryDirectory {
 public:
  static absl::StatusOr<std::unique_ptr<TemporaryDirectory>> Create();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  // Whoever else holds a duplicate of this keeps the folder, should we be killed.
  int hold() const { return hold_.get(); }

 private:
  TemporaryDirectory(std::string path, os::UniqueFd hold, pid_t sweeper)
      : path_(std::move(path)), hold_(std::move(hold)), sweeper_(sweeper) {}

  const std::string path_;
  const os::UniqueFd hold_;  // The write end of a pipe, which the sweeper reads to its end.
  const pid_t sweeper_;
};

}  // namespace sluice::ctl
