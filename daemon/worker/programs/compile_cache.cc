// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/programs/compile_cache.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "broker/base/log.h"

namespace sluice::worker {
namespace {

namespace fs = std::filesystem;

// The driver touches this file with each use of a program.
constexpr char kLastAccessed[] = "last_accessed";
// A program lies in the folder of the first two characters of its hash, named by the others.
constexpr size_t kBucketName = 2;

struct Entry {
  fs::path path;
  fs::file_time_type used;
  uint64_t bytes = 0;
};

// Of the files at and below `path`; no link is followed.
uint64_t BytesOf(const fs::path& path) {
  std::error_code error;
  const auto size_of = [](const fs::directory_entry& entry) {
    std::error_code gone;
    const bool is_file = entry.symlink_status(gone).type() == fs::file_type::regular;
    const uint64_t size = is_file ? entry.file_size(gone) : 0;
    return gone ? 0 : size;
  };
  const fs::directory_entry top(path, error);
  uint64_t bytes = size_of(top);
  if (top.symlink_status(error).type() != fs::file_type::directory) return bytes;
  for (fs::recursive_directory_iterator it(path, error), end; !error && it != end;
       it.increment(error)) {
    bytes += size_of(*it);
  }
  return bytes;
}

fs::file_time_type LastUse(const fs::path& path) {
  std::error_code error;
  const fs::file_time_type used = fs::last_write_time(path / kLastAccessed, error);
  return error ? fs::last_write_time(path, error) : used;
}

// Programs, and what builds that were ended in the middle have left beside their folders.
std::vector<Entry> EntriesOf(const fs::path& cache) {
  std::vector<Entry> entries;
  std::error_code error;
  const auto add = [&entries](const fs::path& path) {
    entries.push_back({path, LastUse(path), BytesOf(path)});
  };
  for (fs::directory_iterator it(cache, error), end; !error && it != end; it.increment(error)) {
    std::error_code inner;
    const bool is_bucket = it->path().filename().native().size() == kBucketName &&
                           it->symlink_status(inner).type() == fs::file_type::directory;
    if (!is_bucket) {
      add(it->path());
      continue;
    }
    for (fs::directory_iterator program(it->path(), inner); !inner && program != end;
         program.increment(inner)) {
      add(program->path());
    }
  }
  return entries;
}

}  // namespace

void CompileCache::AfterBuild() {
  thread_.Assert();
  if (folder_.empty() || most_bytes_ == 0 || --builds_until_look_ > 0) return;
  builds_until_look_ = kBuildsBetweenLooks;
  Trim();
}

// To three quarters, so that not each look finds something to do.
void CompileCache::Trim() const {
  std::vector<Entry> entries = EntriesOf(folder_);
  uint64_t bytes = 0;
  for (const Entry& entry : entries) bytes += entry.bytes;
  size_t left = entries.size();
  if (bytes <= most_bytes_ && left <= most_programs_) return;
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (bytes <= most_bytes_ / 4 * 3 && left <= most_programs_ / 4 * 3) break;
    std::error_code error;
    fs::remove_all(entry.path, error);
    bytes -= entry.bytes;
    --left;
  }
  Log(LogLevel::kInfo, "worker", "compile cache trimmed",
      {{"removed", entries.size() - left}, {"programs_left", left}, {"bytes_left", bytes}});
}

}  // namespace sluice::worker
