// SPDX-License-Identifier: Apache-2.0
//
// The folder in which one isolation domain's drivers keep what they compile, seen from outside: how
// much lies in it, and removal of what was used longest ago. The tenant may change the folder
// meanwhile, with native code, too. So this works with the owner's rights to files (setfsuid) and
// reaches nothing that the owner does not reach; it follows no link, and bounds depth and number of
// the entries that it looks at. It needs no right to others' files, which the installed service
// does not have.
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
  int64_t changed_ns = 0;  // The folder's ctime, which its owner cannot set, before this look.
  bool done = true;        // False: it could not be read, or not be brought within the bounds.
};

// If there are more than `most_bytes` or `most_files`, removes programs used longest ago until
// three quarters of that are left. A program has a folder and goes as a whole. 0 and 0: removes
// all.
CacheUse BoundCache(const std::string& folder, uint64_t most_bytes, uint64_t most_files);

// The same with 0 and 0, and then the folder itself, which lies in one of the caller's.
bool RemoveCache(const std::string& folder);

}  // namespace sluice::broker
