// SPDX-License-Identifier: Apache-2.0
// The record of the arguments of kernels in program binaries, with a driver that forgets them as
// NVIDIA's does.
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "tests/loopback/harness.h"

namespace sluice::worker {
namespace {

namespace fs = std::filesystem;
using Kind = pb::KernelArgDescription;

class ProgramBinaryLoopbackTest : public LoopbackTest {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/argument_records.XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    NewSession(directory_);
  }
  void TearDown() override {
    client_.reset();
    fs::remove_all(directory_);
  }
  void NewSession(const std::string& directory) {
    SessionOptions options;
    options.records_directory = directory;
    Start(options);
    fake_->set_forgetful_binaries(true);
    context_ = MakeContext();
  }
  std::string BinariesOf(uint64_t program) {
    pb::Command command;
    command.mutable_get_info()->set_kind(pb::GetInfo::PROGRAM);
    command.mutable_get_info()->set_id(program);
    command.mutable_get_info()->set_param_name(CL_PROGRAM_BINARIES);
    return client_->Call(command).data();
  }
  // The description of a kernel in a program that is made of this binary.
  pb::KernelDescription KernelOf(const std::string& binary) {
    pb::Command command;
    pb::CreateProgramWithBinary& body = *command.mutable_create_program_with_binary();
    body.set_program_id(client_->NewId());
    body.set_context_id(context_);
    body.add_device_ids(kGpu);
    body.add_sizes(binary.size());
    EXPECT_EQ(client_->Call(command, binary).status(), CL_SUCCESS);
    pb::Command build;
    build.mutable_build_program()->set_program_id(body.program_id());
    EXPECT_EQ(client_->Call(build).status(), CL_SUCCESS);
    pb::Command create;
    create.mutable_create_kernel()->set_kernel_id(client_->NewId());
    create.mutable_create_kernel()->set_program_id(body.program_id());
    create.mutable_create_kernel()->set_name("k1");
    const pb::Answer answer = client_->Call(create);
    EXPECT_EQ(answer.kernels_size(), 1);
    return answer.kernels(0);
  }
  static std::vector<int> KindsOf(const pb::KernelDescription& kernel) {
    std::vector<int> kinds;
    for (const auto& arg : kernel.args()) kinds.push_back(arg.kind());
    return kinds;
  }

  const std::vector<int> kKnown = {Kind::MEMORY, Kind::VALUE, Kind::LOCAL, Kind::IMAGE,
                                   Kind::SAMPLER};
  const std::vector<int> kUnknown = std::vector<int>(5, Kind::UNKNOWN);
  std::string directory_;
  uint64_t context_ = 0;
};

// A client that takes a program's binary finds its kernels' arguments known when it comes back, in
// this session and in a later one. The driver's own answer about them stays as it is.
TEST_F(ProgramBinaryLoopbackTest, RemembersWhatWasBuilt) {
  const std::string binary = BinariesOf(MakeProgram(context_, "src"));
  const pb::KernelDescription here = KernelOf(binary);
  EXPECT_EQ(KindsOf(here), kKnown);
  EXPECT_FALSE(here.args(0).has_info());
  EXPECT_EQ(here.args(1).type_name(), "int");
  NewSession(directory_);
  EXPECT_EQ(KindsOf(KernelOf(binary)), kKnown);
}

// A binary that nobody took from here is as unknown as the driver leaves it.
TEST_F(ProgramBinaryLoopbackTest, KnowsNoOther) {
  BinariesOf(MakeProgram(context_, "src"));
  EXPECT_EQ(KindsOf(KernelOf("binary of another")), kUnknown);
}

// Records are of one directory, that is of one identity: another's are not seen; without one,
// nothing outlives the session.
TEST_F(ProgramBinaryLoopbackTest, NothingOfAnotherIdentity) {
  const std::string binary = BinariesOf(MakeProgram(context_, "src"));
  const std::string other = directory_ + "-other";
  NewSession(other);
  EXPECT_EQ(KindsOf(KernelOf(binary)), kUnknown);
  NewSession("");
  EXPECT_EQ(KindsOf(KernelOf(binary)), kUnknown);
  EXPECT_EQ(KindsOf(KernelOf(BinariesOf(MakeProgram(context_, "src")))), kKnown);
  EXPECT_FALSE(fs::exists(other));
}

// A record that is damaged, or too large to be one, is as good as none.
TEST_F(ProgramBinaryLoopbackTest, DamagedRecords) {
  const std::string binary = BinariesOf(MakeProgram(context_, "src"));
  fs::path record;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory_)) record = entry.path();
  ASSERT_FALSE(record.empty());
  for (const std::string& contents :
       {std::string(), std::string("\xff\xff\xff\xff"), std::string(size_t{2} << 20, '\0')}) {
    std::ofstream(record, std::ios::binary | std::ios::trunc) << contents;
    NewSession(directory_);
    EXPECT_EQ(KindsOf(KernelOf(binary)), kUnknown) << contents.size();
  }
}

// A record of older rules, under the name of that time, is not believed.
TEST_F(ProgramBinaryLoopbackTest, RecordsOfOlderRules) {
  const std::string binary = BinariesOf(MakeProgram(context_, "src"));
  fs::path record;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory_)) record = entry.path();
  std::string old = record.string();
  old.resize(old.rfind('-'));
  ASSERT_TRUE(old.ends_with("-" + std::to_string(binary.size())));
  fs::rename(record, old);
  NewSession(directory_);
  EXPECT_EQ(KindsOf(KernelOf(binary)), kUnknown);
}

// A record about a kernel of another shape says nothing about this one.
TEST_F(ProgramBinaryLoopbackTest, OtherShape) {
  const std::string binary = BinariesOf(MakeProgram(context_, "src"));
  pb::ProgramRecord record;
  record.add_kernels()->set_name("k1");
  record.mutable_kernels(0)->add_args()->set_kind(Kind::VALUE);
  fs::path file;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory_)) file = entry.path();
  std::ofstream(file, std::ios::binary | std::ios::trunc) << record.SerializeAsString();
  NewSession(directory_);
  EXPECT_EQ(KindsOf(KernelOf(binary)), kUnknown);
}

}  // namespace
}  // namespace sluice::worker
