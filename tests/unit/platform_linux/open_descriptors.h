// SPDX-License-Identifier: Apache-2.0
//
// How many descriptors this process has open: every failing path must leave as many as it found.
#pragma once

#include <dirent.h>

namespace sluice::os {

inline int CountOpenDescriptors() {
  DIR* folder = ::opendir("/proc/self/fd");
  int count = 0;
  while (const dirent* entry = ::readdir(folder)) {
    if (entry->d_name[0] != '.') ++count;
  }
  ::closedir(folder);
  return count - 1;  // Not the folder's own.
}

}  // namespace sluice::os
