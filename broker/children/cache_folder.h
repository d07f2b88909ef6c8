// SPDX-License-Identifier: Apache-2.0
//
// The folder in which one isolation domain's drivers keep what they compile, seen from outside: how
// much lies in it, and removal of what was used longest ago. What is in it is the tenant's, who may
// change it meanwhile, and may have native code to do so: all is done with the owner's rights to
// files (setfsuid), so that nothing is reached that the owner does not reach, no link is followed,
// and depth and number of what is looked at are bounded. It needs no right to others' files, which
// the installed service does not have.
//
// Thread-safe. Takes as long as the disk does: not for the event loop. Nothing on Windows, where
// there are no such folders.
#pragma once

#include <cstdint>
#include <string>

#include "broker/os/types.h"

namespace sluice::broker {

struct CacheUse {
  uint64_t bytes = 0;  // On the disk, folders too.
  uint64_t files = 0;
  uint64_t removed_bytes = 0;
  int64_t changed_ns = 0;  // The folder itself, before: its owner cannot set this time (ctime).
  bool done = true;        // False: it could not be looked at, or not be brought within the bounds.
};

// More than `most_bytes` or `most_files`: what was used longest ago goes, until there are three
// quarters of that. Programs go whole, which have a folder each. 0 and 0: all goes.
CacheUse BoundCache(const std::string& folder, uint64_t most_bytes, uint64_t most_files);

// The same with 0 and 0, and then the folder itself, which lies in one of the caller's.
bool RemoveCache(const std::string& folder);

}  // namespace sluice::broker
