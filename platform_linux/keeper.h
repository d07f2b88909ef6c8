// SPDX-License-Identifier: Apache-2.0
//
// The keeper: a process between a stranger's and one that we have started for it. A child that has
// run exec sends its parent SIGCHLD, and wait(-1) finds it; the same holds for one that a process 1
// or a subreaper inherits. The keeper is the stranger's child and our process's parent. It never
// runs exec and was cloned without a signal, so that wait() finds it only with __WCLONE or __WALL.
// It ends when our process has ended. Used inside platform_linux.
//
// It is a copy of the stranger's process, and keeps no descriptor and no memory of it but the few
// pages that it runs on. Otherwise every page that the stranger then writes would exist twice.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace sluice::os {

// Addresses that the keeper needs, found before the fork.
struct KeeperPlan {
  uintptr_t code_begin = 0;  // The library or program that Keep is in.
  uintptr_t code_end = 0;
  uintptr_t thread = 0;  // The calling thread's control block.
  uintptr_t page_bytes = 0;
};
KeeperPlan PlanKeeper();

// Runs in the keeper, with every signal blocked. `child` is its child.
[[noreturn]] void Keep(const KeeperPlan& plan, pid_t child);

}  // namespace sluice::os
