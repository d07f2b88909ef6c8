// SPDX-License-Identifier: Apache-2.0
//
// The keeper: a process between a stranger's and one that we have started for it. A child that has
// run exec sends its parent SIGCHLD and is found by wait(-1); so does one that a process 1 or a
// subreaper inherits. The keeper never runs exec, was cloned without a signal, and is found only by
// who asks for such children (__WCLONE, __WALL): it is the parent of ours, and the stranger's
// child. It ends when ours has ended. Used inside platform_linux.
//
// It is a copy of the stranger's process, of which it keeps no descriptor and no memory but the few
// pages that it runs on; else what the stranger then writes to would be there twice.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace sluice::os {

// What the keeper needs to know, found before the fork.
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
