// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/programs/include_folder.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/worker/worker_process.h"
#include "proto/include_host.h"

namespace sluice::worker {
namespace {

namespace fs = std::filesystem;

bool IsPlainAbsolute(const std::string& path) {
  if (path.size() < 2 || path[0] != '/' || path.find('\0') != std::string::npos) return false;
  for (const absl::string_view part : absl::StrSplit(absl::string_view(path).substr(1), '/')) {
    if (part.empty() || part == "." || part == "..") return false;
  }
  return true;
}

bool EndsPath(const std::string& text, size_t at) {
  // A quote that belongs to a value has a backslash before it.
  if (at + 1 < text.size() && text[at] == '\\') return text[at + 1] == '"' || text[at + 1] == '\'';
  return at == text.size() || absl::StrContains(" \t\"'/", std::string(1, text[at]));
}

bool BeginsPath(const std::string& text, size_t at) {
  return at == 0 || absl::StrContains(" \t\"'=I", std::string(1, text[at - 1]));
}

// True if there are quotes around [begin, end) that are none of the value's own.
bool StandsInQuotes(const std::string& text, size_t begin, size_t end) {
  if (begin == 0 || end == text.size() || text[begin - 1] != text[end]) return false;
  return (text[end] == '"' || text[end] == '\'') && (begin < 2 || text[begin - 2] != '\\');
}

}  // namespace

void IncludeFolder::SweepAbandoned() {
  std::error_code error;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(fs::temp_directory_path(error), error)) {
    if (!absl::StartsWith(entry.path().filename().string(), kTemporaryFolderPrefix)) continue;
    os::UniqueFd held = HoldFolder(entry.path().string());
    if (held.valid()) RemoveHeldFolder(entry.path().string(), std::move(held));
  }
}

IncludeFolder::~IncludeFolder() {
  if (!root_.empty()) RemoveHeldFolder(root_, std::move(held_));
}

absl::Status IncludeFolder::MakeSteps(
    const google::protobuf::RepeatedPtrField<pb::IncludeStep>& steps) {
  for (const pb::IncludeStep& step : steps) {
    const std::string& target = step.link_target();
    const bool is_folder = target.empty();
    if (!IsPlainAbsolute(step.path()) || !(is_folder || target == "/" || IsPlainAbsolute(target)))
      return absl::InvalidArgumentError(
          absl::StrCat("include step \"", step.path(), "\" to \"", target, "\""));
    if (!IsPathInFolder(step.path()) || !IsPathInFolder(target) || !MakeRoot()) continue;
    std::error_code error;  // The compiler names what it misses.
    const fs::path path = root_ + step.path();
    fs::create_directories(is_folder ? path : path.parent_path(), error);
    if (is_folder) continue;
    if (fs::is_directory(root_ + target, error))
      fs::create_directory_symlink(root_ + target, path, error);
    else
      fs::create_symlink(root_ + target, path, error);
  }
  return absl::OkStatus();
}

absl::Status IncludeFolder::Write(
    const google::protobuf::RepeatedPtrField<pb::IncludeFile>& files) {
  if (files.empty() || !MakeRoot()) return absl::OkStatus();  // The compiler names what it misses.
  std::error_code error;
  for (const pb::IncludeFile& file : files) {
    if (!IsPlainAbsolute(file.path()))
      return absl::InvalidArgumentError(absl::StrCat("include path \"", file.path(), "\""));
    if (!IsPathInFolder(file.path())) continue;  // As one that cannot be written.
    const fs::path path = root_ + file.path();
    fs::create_directories(path.parent_path(), error);
    std::ofstream(path, std::ios::binary) << file.contents();
    if (host_is_link_) continue;
    const fs::path below_host = absl::StrCat(root_, "/", wire::kIncludeHostFolder, file.path());
    fs::create_directories(below_host.parent_path(), error);
    fs::create_hard_link(path, below_host, error);
  }
  return absl::OkStatus();
}

bool IncludeFolder::MakeRoot() {
  if (!root_.empty()) return true;
  std::error_code error;
  // Again if another worker's sweep was between the making and the holding.
  for (int i = 0; i < 8 && !held_.valid(); ++i) {
    root_ = MakeTemporaryFolder();
    if (root_.empty()) return false;
    held_ = HoldFolder(root_);
  }
  // Absolute paths of the client's host, which its sources name below this one. Where only
  // administrators make links to folders (Windows), each file has a second name there; a compiler
  // still sees one file, for `#pragma once`.
  fs::create_directory_symlink(".", root_ + "/" + wire::kIncludeHostFolder, error);
  host_is_link_ = !error;
  return true;
}

absl::Status IncludeFolder::MakeDirectories(
    const google::protobuf::RepeatedPtrField<std::string>& directories) {
  for (const std::string& directory : directories) {
    if (directory != "/" && !IsPlainAbsolute(directory))
      return absl::InvalidArgumentError(absl::StrCat("include directory \"", directory, "\""));
    std::error_code error;
    if (!IsPathInFolder(directory) || !MakeRoot()) continue;
    fs::create_directories(root_ + directory, error);
    if (directory.find_first_of(" \t") == std::string::npos) continue;
    const std::string name = absl::StrCat("/.sluice-folder-", second_names_.size());
    // A link, so that "../x.h" is found from there as well.
    fs::create_directory_symlink(fs::path(directory.substr(1)), root_ + name, error);
    if (!error) second_names_.emplace(directory, name);
  }
  return absl::OkStatus();
}

std::string IncludeFolder::RewriteOptions(
    const std::string& options,
    const google::protobuf::RepeatedPtrField<std::string>& directories) const {
  if (root_.empty()) return options;
  std::vector<std::string> longest_first(directories.begin(), directories.end());
  std::sort(longest_first.begin(), longest_first.end(),
            [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
  std::string out;
  for (size_t at = 0; at < options.size();) {
    const auto hit =
        std::find_if(longest_first.begin(), longest_first.end(), [&](const std::string& directory) {
          return !directory.empty() && options.compare(at, directory.size(), directory) == 0 &&
                 BeginsPath(options, at) && EndsPath(options, at + directory.size());
        });
    if (hit == longest_first.end()) {
      out += options[at++];
      continue;
    }
    const auto second_name = second_names_.find(*hit);
    const bool renamed = second_name != second_names_.end();
    const bool unquote = renamed && StandsInQuotes(options, at, at + hit->size());
    if (unquote) out.pop_back();
    absl::StrAppend(&out, root_, renamed ? second_name->second : *hit);
    at += hit->size() + (unquote ? 1 : 0);
  }
  return out;
}

}  // namespace sluice::worker
