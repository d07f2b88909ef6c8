// SPDX-License-Identifier: Apache-2.0
// Records of the arguments of kernels in program binaries. Some drivers keep no argument
// information in a binary, and without it a value of a handle's size cannot be told from a handle.
// So when a client takes the binaries of a program whose driver still has the information, it is
// written down under the binary's hash. A program that is made of the same binary later, in this
// session or another, gets it from here.
//
// Trust: the directory is one identity's alone (the broker gives none otherwise), so that a record
// can mislead only whoever could have written it. The kinds of arguments decide what this worker
// hands to its own driver, in its own process. The hash is not a cryptographic one for that reason.
// A record that is read is bounded and must parse. Session thread only.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "broker/os/thread_checker.h"
#include "proto/command.pb.h"
#include "proto/program_record.pb.h"

namespace sluice::worker {

namespace pb = v1;

class ArgumentRecords {
 public:
  // Without a directory, what is noted lives as long as the session.
  explicit ArgumentRecords(std::string directory) : directory_(std::move(directory)) {}

  void Note(std::string_view binary, const pb::ProgramRecord& record);
  // Null if nothing is known of this binary.
  std::shared_ptr<const pb::ProgramRecord> Find(std::string_view binary);

 private:
  static constexpr size_t kMaxInMemory = 1024;
  static constexpr size_t kMaxFiles = 4096;
  static constexpr size_t kMaxRecordBytes = size_t{1} << 20;

  static std::string KeyOf(std::string_view binary);
  void Remember(const std::string& key, std::shared_ptr<const pb::ProgramRecord> record);
  void Write(const std::string& key, const pb::ProgramRecord& record);
  void MakeRoom() const;

  os::ThreadChecker thread_;
  const std::string directory_;
  bool prepared_ = false;  // The directory is there, with room for what one session writes.
  std::map<std::string, std::shared_ptr<const pb::ProgramRecord>> known_;
};

}  // namespace sluice::worker
