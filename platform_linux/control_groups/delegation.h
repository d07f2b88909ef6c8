// SPDX-License-Identifier: Apache-2.0
//
// Finds the control group of version 2 that is delegated to this process, if any: by systemd
// (Delegate=), a container's runtime (a writable /sys/fs/cgroup), or an operator by hand. The
// system's root group is never taken, and hierarchies of version 1 are not used.
//
// Reads what the kernel says of this process, and changes nothing. Thread-safe.
#pragma once

#include <string>

namespace sluice::os {

// The group for a daemon's own processes, inside the one that was left to it.
inline constexpr char kDaemonsGroup[] = "broker";

struct Delegation {
  std::string top;  // Its folder; empty: there is none.
  // This process is in its kDaemonsGroup already (systemd's DelegateSubgroup=).
  bool entered = false;
  bool by_systemd = false;  // The folder is marked as delegated by systemd.
  std::string problem;      // Why there is none, in one sentence without a full stop; else empty.
  std::string advice;       // Says what to do about that.
  // The controllers that hierarchies of version 1 have, and this one therefore has not: "cpu, memory".
  std::string version_1;
};

// `process`: as /proc/self, which has the files `cgroup` and `mountinfo`.
Delegation FindDelegation(const std::string& process = "/proc/self");

}  // namespace sluice::os
