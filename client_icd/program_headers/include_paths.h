// SPDX-License-Identifier: Apache-2.0
// The paths by which programs name their include files, resolved as this host does
// (path_resolution(7)): after a symbolic link, ".." is the folder above the link's target. The
// links that a path leads through, and the folders that it leaves again, are remembered. The worker
// makes the same below its include folder, so that a compiler there finds the same file by the same
// name. Windows takes ".." away by the text alone, before it looks. Thread-compatible; lives for
// one scan.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::client {

struct IncludeStep {
  std::string path;         // A link or a folder.
  std::string link_target;  // Empty: a folder.
};

class IncludePaths {
 public:
  // All of them absolute, without ".", ".." and doubled slashes.
  struct Place {
    std::string path;     // The place of the name: no folder of it is a link.
    std::string target;   // The same, or where it leads if it is a link.
    std::string spelled;  // As it was written, links in it; empty if ".." was in it.
  };

  // `base` is a folder that Folder() has returned; only for absolute paths may it be empty. None if
  // the path leads through what is not there.
  std::optional<Place> Find(std::string_view path, const std::string& base);

  // The place of a folder; of a path that leads through what is not there, as far as it goes. Empty
  // for a relative path without a base.
  std::string Folder(std::string_view path, const std::string& base);

  // A link's target comes before the link if it is a folder.
  const std::vector<IncludeStep>& steps() const { return steps_; }

 private:
  bool Walk(std::string_view path, Place* place);
  bool FollowLink(std::string_view link, std::string* path);
  void AddStep(const std::string& path, const std::string& link_target);

  std::vector<IncludeStep> steps_;
  std::set<std::string> known_;  // The paths of steps_.
  int links_ = 0;                // Followed for the path that is being resolved.
};

// The folder of an absolute path.
std::string DirectoryOf(const std::string& path);

}  // namespace sluice::client
