// SPDX-License-Identifier: Apache-2.0
// The compile cache of the session's identity, where a driver may keep each program that was ever
// built and remove none (other drivers' caches have bounds of their own). A client that builds
// without end would fill the disk. When it has grown beyond its bounds, the programs that were used
// longest ago go. One that a living program is of is compiled again if the driver wants it.
//
// No bound for kernels that make system calls of their own (CPU devices): those write what they
// like. Build thread only. Trusts nothing in the folder, where other sessions of the identity are
// at work meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "broker/os/thread_checker.h"

namespace sluice::worker {

class CompileCache {
 public:
  static constexpr size_t kMostPrograms = 16384;
  static constexpr int kBuildsBetweenLooks = 64;

  // Without a folder, or a bound (0), nothing is ever removed.
  CompileCache(std::string folder, uint64_t most_bytes, size_t most_programs = kMostPrograms)
      : folder_(std::move(folder)), most_bytes_(most_bytes), most_programs_(most_programs) {}

  // Looks after the first build of a session, and then now and again.
  void AfterBuild();

 private:
  void Trim() const;

  os::ThreadChecker thread_;
  const std::string folder_;
  const uint64_t most_bytes_;
  const size_t most_programs_;
  int builds_until_look_ = 0;
};

}  // namespace sluice::worker
