// SPDX-License-Identifier: Apache-2.0
#include "platform_linux/control_groups/delegation.h"

#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "platform_linux/control_groups/group.h"

namespace sluice::os {
namespace {

constexpr char kUnitAdvice[] =
    "run sluiced as the service that is installed with it, whose unit says Delegate=";

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

// The contents of /proc/self/cgroup: a line "ID:CONTROLLERS:PATH" for each hierarchy, ID 0 for
// version 2.
struct OwnGroups {
  std::optional<std::string> version_2;
  std::vector<std::string> version_1;  // Controllers.
};

OwnGroups ParseOwnGroups(const std::string& text) {
  OwnGroups own;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    if (parts[0] == "0" && parts[1].empty()) {
      own.version_2 = parts[2];
      continue;
    }
    for (const absl::string_view name : absl::StrSplit(parts[1], ',', absl::SkipEmpty())) {
      if (!absl::StartsWith(name, "name=")) own.version_1.emplace_back(name);
    }
  }
  return own;
}

// A path as mountinfo writes it, with \040 for a space.
std::string Unescaped(absl::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    int code = 0;
    if (text[i] == '\\' && i + 3 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '3') {
      for (size_t k = 1; k <= 3; ++k) code = code * 8 + (text[i + k] - '0');
      plain += static_cast<char>(code);
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// The folders at which `group` can be seen: one of each mount of the hierarchy that shows it.
std::vector<std::string> FoldersOf(const std::string& group, const std::string& mounts) {
  std::vector<std::string> folders;
  for (const absl::string_view line : absl::StrSplit(mounts, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> halves = absl::StrSplit(line, absl::MaxSplits(" - ", 1));
    if (halves.size() != 2 || !absl::StartsWith(halves[1], "cgroup2 ")) continue;
    const std::vector<absl::string_view> words = absl::StrSplit(halves[0], ' ');
    if (words.size() < 5) continue;
    const std::string root = words[3] == "/" ? "" : Unescaped(words[3]);
    if (group != root && !absl::StartsWith(group, root + "/")) continue;
    std::string folder = absl::StrCat(Unescaped(words[4]), group.substr(root.size()));
    while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
    folders.push_back(std::move(folder));
  }
  return folders;
}

bool SaysDelegated(const std::string& folder) {
  char value[8] = {};
  for (const char* name : {"user.delegate", "trusted.delegate"}) {
    if (::getxattr(folder.c_str(), name, value, sizeof(value)) == 1 && value[0] == '1') return true;
  }
  return false;
}

// systemd's own units: it alone divides them, unless it says otherwise.
bool IsUnit(absl::string_view group) {
  return absl::EndsWith(group, ".service") || absl::EndsWith(group, ".scope") ||
         absl::EndsWith(group, ".slice") || absl::EndsWith(group, ".socket");
}

void Refuse(Delegation* found, std::string problem, std::string advice) {
  found->top.clear();
  found->problem = std::move(problem);
  found->advice = std::move(advice);
}

// The first of the folders that can be written; else why none can.
void ChooseFolder(const std::vector<std::string>& folders, Delegation* found) {
  int error_number = 0;
  for (const std::string& folder : folders) {
    if (::access(absl::StrCat(folder, "/cgroup.procs").c_str(), W_OK) == 0 &&
        ::access(absl::StrCat(folder, "/cgroup.subtree_control").c_str(), W_OK) == 0) {
      found->top = folder;
      return;
    }
    error_number = errno;
  }
  if (error_number == EROFS) {
    return Refuse(
        found, absl::StrCat("the daemon sees its control group ", folders.back(), " read-only"),
        absl::StrCat(kUnitAdvice,
                     ", or start the container with a writable /sys/fs/cgroup of its own"));
  }
  Refuse(found,
         absl::StrCat("the daemon's control group ", folders.back(),
                      " is not its own: ", std::strerror(error_number)),
         absl::StrCat(kUnitAdvice, ", or a user's daemon by systemd-run --user -p Delegate=yes"));
}

}  // namespace

Delegation FindDelegation(const std::string& process) {
  Delegation found;
  const OwnGroups own = ParseOwnGroups(Contents(process + "/cgroup"));
  found.version_1 = absl::StrJoin(own.version_1, ", ");
  if (!own.version_2.has_value()) {
    Refuse(&found,
           own.version_1.empty()
               ? "this system has no control groups"
               : absl::StrCat("this system has control groups of version 1 alone (",
                              found.version_1, "), which Sluice does not use"),
           "boot with version 2 (systemd.unified_cgroup_hierarchy=1)");
    return found;
  }
  std::string group = *own.version_2 == "/" ? "" : *own.version_2;
  if (absl::StartsWith(group, "/..")) {
    Refuse(&found, "the daemon's control group is outside of its container", kUnitAdvice);
    return found;
  }
  const std::string leaf = absl::StrCat("/", kDaemonsGroup);
  found.entered = absl::EndsWith(group, leaf);
  if (found.entered) group.resize(group.size() - leaf.size());
  const std::vector<std::string> folders = FoldersOf(group, Contents(process + "/mountinfo"));
  if (folders.empty()) {
    Refuse(&found, "no hierarchy of control groups of version 2 is mounted here",
           absl::StrCat(kUnitAdvice, ", or mount one at /sys/fs/cgroup"));
    return found;
  }
  // The root has no type.
  if (!ReadOfGroup(folders.front(), "cgroup.type").has_value()) {
    Refuse(&found, "the daemon runs in the system's root control group, which is nobody's",
           absl::StrCat(kUnitAdvice, ", or start it in a group of its own"));
    return found;
  }
  ChooseFolder(folders, &found);
  if (found.top.empty()) return found;
  const std::optional<std::string> type = ReadOfGroup(found.top, "cgroup.type");
  if (type != "domain") {
    Refuse(&found,
           absl::StrCat("the daemon's control group ", found.top, " is of type \"",
                        type.value_or(""), "\", which has no limits of memory"),
           kUnitAdvice);
    return found;
  }
  found.by_systemd = SaysDelegated(found.top);
  if (IsUnit(group) && !found.by_systemd) {
    Refuse(&found, absl::StrCat("systemd has not left the control group ", group, " to the daemon"),
           absl::StrCat(kUnitAdvice, ", or add Delegate=yes to that unit"));
  }
  return found;
}

}  // namespace sluice::os
