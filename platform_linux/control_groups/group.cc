// SPDX-License-Identifier: Apache-2.0
#include "platform_linux/control_groups/group.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "platform_linux/errno_status.h"

namespace sluice::os {
namespace {

constexpr int kMostRounds = 100;  // Of moving processes which make others meanwhile.

std::string PathOf(const std::string& group, const char* file) {
  return absl::StrCat(group, "/", file);
}

std::vector<std::string> Words(const std::string& group, const char* file) {
  return absl::StrSplit(ReadOfGroup(group, file).value_or(""), absl::ByAnyChar(" \n"),
                        absl::SkipEmpty());
}

}  // namespace

std::optional<std::string> ReadOfGroup(const std::string& group, const char* file) {
  const UniqueFd fd(::open(PathOf(group, file).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return std::nullopt;
  std::string text;
  char bytes[4096];
  while (true) {
    const ssize_t count = ::read(fd.get(), bytes, sizeof(bytes));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) return std::string(absl::StripAsciiWhitespace(text));
    text.append(bytes, static_cast<size_t>(count));
  }
}

std::optional<uint64_t> ReadNumberOfGroup(const std::string& group, const char* file) {
  uint64_t number = 0;
  const std::optional<std::string> text = ReadOfGroup(group, file);
  if (!text.has_value() || !absl::SimpleAtoi(*text, &number)) return std::nullopt;
  return number;
}

uint64_t ReadEventOfGroup(const std::string& group, const char* file, absl::string_view key) {
  const std::string text = ReadOfGroup(group, file).value_or("");
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    uint64_t number = 0;
    if (words.size() == 2 && words[0] == key && absl::SimpleAtoi(words[1], &number)) return number;
  }
  return 0;
}

absl::Status WriteToGroup(const std::string& group, const char* file, absl::string_view value) {
  const std::string path = PathOf(group, file);
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, path);
  ssize_t written;
  do {
    written = ::write(fd.get(), value.data(), value.size());
  } while (written < 0 && errno == EINTR);
  if (written < 0) return ErrnoStatus(errno, absl::StrCat("writing ", value, " to ", path));
  return absl::OkStatus();
}

absl::Status MakeGroup(const std::string& group) {
  if (::mkdir(group.c_str(), 0755) == 0 || errno == EEXIST) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("making the control group ", group));
}

absl::StatusOr<UniqueFd> OpenGroup(const std::string& group) {
  UniqueFd fd(::open(group.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, absl::StrCat("opening the control group ", group));
  return fd;
}

std::vector<std::string> GroupsIn(const std::string& group) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(group.c_str()), &::closedir);
  while (const dirent* entry = folder != nullptr ? ::readdir(folder.get()) : nullptr) {
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  return names;
}

absl::StatusOr<std::vector<std::string>> EnableControllers(const std::string& group,
                                                           const std::vector<std::string>& wanted) {
  const std::vector<std::string> offered = Words(group, "cgroup.controllers");
  std::vector<std::string> enabled;
  for (const std::string& name : wanted) {
    if (std::find(offered.begin(), offered.end(), name) == offered.end()) continue;
    const absl::Status written =
        WriteToGroup(group, "cgroup.subtree_control", absl::StrCat("+", name));
    if (absl::IsFailedPrecondition(written)) return absl::ResourceExhaustedError(written.message());
    if (written.ok()) enabled.push_back(name);
  }
  return enabled;
}

void DisableControllers(const std::string& group) {
  for (const std::string& name : GroupsIn(group))
    DisableControllers(absl::StrCat(group, "/", name));
  for (const std::string& name : Words(group, "cgroup.subtree_control"))
    WriteToGroup(group, "cgroup.subtree_control", absl::StrCat("-", name)).IgnoreError();
}

absl::Status MoveProcesses(const std::string& from, const std::string& to) {
  absl::Status moved;
  for (int i = 0; i < kMostRounds; ++i) {
    const std::vector<std::string> processes = Words(from, "cgroup.procs");
    if (processes.empty()) return absl::OkStatus();
    for (const std::string& process : processes) {
      const absl::Status written = WriteToGroup(to, "cgroup.procs", process);
      if (!written.ok() && !absl::IsNotFound(written)) moved = written;  // It has ended since.
    }
    if (!moved.ok()) return moved;
  }
  return absl::UnavailableError(absl::StrCat(from, " has ever more processes"));
}

void KillGroup(const std::string& group) {
  if (WriteToGroup(group, "cgroup.kill", "1").ok()) return;
  // Before Linux 5.14.
  pid_t pid = 0;
  for (const std::string& process : Words(group, "cgroup.procs")) {
    if (absl::SimpleAtoi(process, &pid) && pid > 1) ::kill(pid, SIGKILL);
  }
}

bool RemoveGroup(const std::string& group) {
  if (::rmdir(group.c_str()) == 0 || errno == ENOENT) return true;
  for (const std::string& name : GroupsIn(group)) {
    if (!RemoveGroup(absl::StrCat(group, "/", name))) return false;
  }
  return ::rmdir(group.c_str()) == 0;
}

}  // namespace sluice::os
