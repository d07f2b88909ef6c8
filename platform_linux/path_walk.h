// SPDX-License-Identifier: Apache-2.0
//
// Resolves paths step by step, and records the folders and links on the way. It serves rules about
// files that must not follow links which others may have laid (file_access.cc), and a root that
// shows the same names (helpers/private_root.cc).
#pragma once

#include <sys/stat.h>

#include <string>
#include <utility>
#include <vector>

#include "broker/os/scoped_handle.h"

namespace sluice::os {

// Identifies a file or folder, whatever path led to it.
using FileId = std::pair<dev_t, ino_t>;

struct PathNode {
  UniqueFd fd;  // O_PATH.
  struct stat info = {};

  explicit PathNode(int opened);
  bool valid() const { return fd.valid(); }
  FileId id() const { return {info.st_dev, info.st_ino}; }
};

// A folder or link that was passed, by its name without links: "/usr/lib".
struct PathStep {
  std::string at;
  std::string link;  // The target; "" for a folder.
};

// A path resolved step by step, with all files and folders on the way.
struct Way {
  PathNode end = PathNode(-1);  // Invalid if it leads nowhere.
  std::string at;               // The end's name, without links; "" for the root.
  std::vector<FileId> passed;   // All before the end, those behind links too.
  std::vector<PathStep> steps;  // Those that have a name: not the root.
};

Way Walk(const std::string& path);

// Without those whose name says that they lie below one of `own`. (One with ".." says nothing.)
std::vector<Way> WalkAll(const std::vector<std::string>& paths,
                         const std::vector<std::string>& own);

bool LeadsThrough(const Way& way, const std::vector<FileId>& folders);

}  // namespace sluice::os
