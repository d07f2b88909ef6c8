// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/programs/argument_records.h"

// The header-only form: nothing to link.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/os/file.h"
#include "broker/os/this_process.h"

namespace sluice::worker {
namespace {

namespace fs = std::filesystem;

// Of the rules by which kinds are told (kernel_description.cc): what was written by others is not
// found.
constexpr int kRules = 2;

}  // namespace

std::string ArgumentRecords::KeyOf(std::string_view binary) {
  const XXH128_hash_t hash = XXH3_128bits(binary.data(), binary.size());
  return absl::StrCat(absl::Hex(hash.high64, absl::kZeroPad16),
                      absl::Hex(hash.low64, absl::kZeroPad16), "-", binary.size(), "-", kRules);
}

void ArgumentRecords::Remember(const std::string& key,
                               std::shared_ptr<const pb::ProgramRecord> record) {
  if (known_.size() >= kMaxInMemory) known_.clear();
  known_[key] = std::move(record);
}

void ArgumentRecords::Note(std::string_view binary, const pb::ProgramRecord& record) {
  thread_.Assert();
  if (binary.empty() || record.ByteSizeLong() > kMaxRecordBytes) return;
  const std::string key = KeyOf(binary);
  const bool is_new = known_.count(key) == 0;
  Remember(key, std::make_shared<const pb::ProgramRecord>(record));
  if (is_new && !directory_.empty()) Write(key, record);
}

// Under another name first: a reader sees all of it or nothing. A record that cannot be written is
// not kept.
void ArgumentRecords::Write(const std::string& key, const pb::ProgramRecord& record) {
  std::error_code error;
  if (!std::exchange(prepared_, true)) {
    fs::create_directories(directory_, error);
    MakeRoom();
  }
  const std::string path = absl::StrCat(directory_, "/", key);
  if (fs::exists(path, error)) return;
  const std::string temporary = absl::StrCat(path, ".", os::ProcessId());
  std::ofstream file(temporary, std::ios::binary);
  file << record.SerializeAsString();
  file.close();
  if (file.good()) {
    fs::rename(temporary, path, error);
  } else {
    fs::remove(temporary, error);
  }
}

void ArgumentRecords::MakeRoom() const {
  std::error_code error;
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory_, error))
    files.emplace_back(entry.last_write_time(error), entry.path());
  if (files.size() < kMaxFiles) return;
  std::sort(files.begin(), files.end());
  files.resize(files.size() - kMaxFiles / 2);
  for (const auto& [time, path] : files) fs::remove(path, error);
}

std::shared_ptr<const pb::ProgramRecord> ArgumentRecords::Find(std::string_view binary) {
  thread_.Assert();
  const std::string key = KeyOf(binary);
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  if (directory_.empty()) return nullptr;
  const std::string path = absl::StrCat(directory_, "/", key);
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return nullptr;
  const absl::StatusOr<std::string> bytes = os::ReadNamedFile(path, kMaxRecordBytes);
  auto record = std::make_shared<pb::ProgramRecord>();
  if (!bytes.ok() || bytes->empty() || !record->ParseFromString(*bytes)) return nullptr;
  Remember(key, record);
  return record;
}

}  // namespace sluice::worker
