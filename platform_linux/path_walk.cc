// SPDX-License-Identifier: Apache-2.0
#include "platform_linux/path_walk.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace sluice::os {
namespace {

constexpr int kMostLinks = 40;  // As the kernel's.

PathNode RootNode() { return PathNode(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)); }

// O_DIRECTORY triggers automounts, but does not open a link.
PathNode NextNode(int folder, const std::string& name) {
  const int step = ::openat(folder, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (step >= 0 || (errno != ENOTDIR && errno != ELOOP)) return PathNode(step);
  return PathNode(::openat(folder, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
}

// The kernel's own rule for links in folders in which everybody may write (protected_symlinks in
// proc(5)).
bool MayFollow(const PathNode& folder, const PathNode& link) {
  constexpr mode_t kEverybodys = S_ISVTX | S_IWOTH;
  return (folder.info.st_mode & kEverybodys) != kEverybodys ||
         link.info.st_uid == folder.info.st_uid || link.info.st_uid == ::geteuid();
}

void PutAhead(absl::string_view path, std::vector<std::string>* ahead) {
  const std::vector<std::string> names = absl::StrSplit(path, '/', absl::SkipEmpty());
  ahead->insert(ahead->end(), names.rbegin(), names.rend());
}

// The name of `name` in the folder at `here`.
std::string Below(const std::string& here, const std::string& name) {
  if (name == ".") return here;
  if (name == "..") return here.substr(0, here.empty() ? 0 : here.rfind('/'));
  return absl::StrCat(here, "/", name);
}

// Judges by the name alone; a name with ".." may mean anything.
bool IsBelowAnother(const std::string& path, const std::vector<std::string>& folders) {
  if (absl::StrContains(path, "..")) return false;
  return std::any_of(folders.begin(), folders.end(), [&path](absl::string_view folder) {
    while (absl::ConsumeSuffix(&folder, "/")) {
    }
    return path.size() > folder.size() + 1 && absl::StartsWith(path, folder) &&
           path[folder.size()] == '/';
  });
}

}  // namespace

PathNode::PathNode(int opened) : fd(opened) {
  if (fd.valid() && ::fstat(fd.get(), &info) != 0) fd.reset();
}

Way Walk(const std::string& path) {
  Way way;
  std::error_code error;
  std::vector<std::string> ahead;  // The next one is the last.
  PutAhead(std::filesystem::absolute(path, error).native(), &ahead);
  if (error) return way;
  PathNode here = RootNode();
  for (int links = 0; here.valid() && !ahead.empty();) {
    way.passed.push_back(here.id());
    PathNode next = NextNode(here.fd.get(), ahead.back());
    const std::string at = Below(way.at, ahead.back());
    ahead.pop_back();
    if (!next.valid() || !S_ISLNK(next.info.st_mode)) {
      if (!ahead.empty() && !at.empty()) way.steps.push_back({at, ""});
      way.at = at;
      here = std::move(next);
      continue;
    }
    char target[PATH_MAX];
    const ssize_t length = ::readlinkat(next.fd.get(), "", target, sizeof(target));
    if (length <= 0 || ++links > kMostLinks || !MayFollow(here, next)) return way;
    const absl::string_view text(target, static_cast<size_t>(length));
    PutAhead(text, &ahead);
    way.steps.push_back({at, std::string(text)});
    if (!absl::StartsWith(text, "/")) continue;
    here = RootNode();
    way.at.clear();
  }
  way.end = std::move(here);
  return way;
}

std::vector<Way> WalkAll(const std::vector<std::string>& paths,
                         const std::vector<std::string>& own) {
  std::vector<Way> ways;
  ways.reserve(paths.size());
  for (const std::string& path : paths) {
    if (!IsBelowAnother(path, own)) ways.push_back(Walk(path));
  }
  return ways;
}

bool LeadsThrough(const Way& way, const std::vector<FileId>& folders) {
  return std::any_of(way.passed.begin(), way.passed.end(), [&folders](const FileId& id) {
    return std::find(folders.begin(), folders.end(), id) != folders.end();
  });
}

}  // namespace sluice::os
