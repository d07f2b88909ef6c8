// SPDX-License-Identifier: Apache-2.0
extern "C" {
#include "deploy/slurm/job_place.h"
}

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

namespace fs = std::filesystem;

class JobPlaceTest : public testing::Test {
 protected:
  JobPlaceTest() {
    char name[] = "/tmp/sluice-job-place-XXXXXX";
    folder_ = mkdtemp(name);
    state_ = folder_ / "state";
  }
  ~JobPlaceTest() override { fs::remove_all(folder_); }

  bool Open(bool make) { return OpenPlace(state_.c_str(), 12, make, &place_, &problem_); }
  static mode_t ModeOf(const fs::path& path) {
    struct stat info = {};
    stat(path.c_str(), &info);
    return info.st_mode & 07777;
  }

  fs::path folder_, state_;
  JobPlace place_ = {};
  Problem problem_ = {};
};

// The files written are read again, by whoever may; and all of it goes.
TEST_F(JobPlaceTest, KeepsTermsAndToken) {
  const mode_t mask = umask(0077);
  ASSERT_TRUE(Open(true)) << problem_.text;
  umask(mask);
  const JobTerms written = {1001, 1795000000, 25, uint64_t{4} << 30, 8, "/run/x/broker.sock"};
  JobTerms read = {};
  EXPECT_FALSE(ReadTerms(&place_, &read));
  ASSERT_TRUE(WriteTerms(&place_, &written, &problem_)) << problem_.text;
  ASSERT_TRUE(ReadTerms(&place_, &read));
  EXPECT_EQ(read.uid, 1001u);
  EXPECT_EQ(read.submitted, 1795000000);
  EXPECT_EQ(read.share, 25u);
  EXPECT_EQ(read.memory_bytes, uint64_t{4} << 30);
  EXPECT_EQ(read.sessions, 8u);
  EXPECT_STREQ(read.socket, "/run/x/broker.sock");
  ASSERT_TRUE(WriteToken(&place_, "first", geteuid(), &problem_)) << problem_.text;
  ASSERT_TRUE(WriteToken(&place_, "second", geteuid(), &problem_)) << problem_.text;
  std::string token;
  std::ifstream(state_ / "job-12/token") >> token;
  EXPECT_EQ(token, "second");
  EXPECT_EQ(ModeOf(state_), 0711u);
  EXPECT_EQ(ModeOf(state_ / "job-12"), 0711u);
  EXPECT_EQ(ModeOf(state_ / "job-12/terms"), 0600u);
  EXPECT_EQ(ModeOf(state_ / "job-12/token"), 0400u);
  EXPECT_TRUE(HasPlace(state_.c_str(), 12));
  RemovePlace(&place_, 12);
  ClosePlace(&place_);
  EXPECT_FALSE(HasPlace(state_.c_str(), 12));
}

// A folder that others can write, or that is a link, is none of root's.
TEST_F(JobPlaceTest, RefusesOthersFolders) {
  fs::create_directory(state_);
  chmod(state_.c_str(), 0777);
  EXPECT_FALSE(Open(true));
  EXPECT_NE(std::string(problem_.text).find("nobody else's to write"), std::string::npos);
  chmod(state_.c_str(), 0711);
  fs::create_directory_symlink(folder_, state_ / "job-12");
  EXPECT_FALSE(Open(true));
  fs::rename(state_, folder_ / "real");
  fs::create_directory_symlink(folder_ / "real", state_);
  EXPECT_FALSE(Open(true));
}

// Without a folder there is nothing to make, and damaged terms are none.
TEST_F(JobPlaceTest, ReadsWhatIsThere) {
  EXPECT_FALSE(Open(false));
  fs::create_directory(state_);
  ASSERT_TRUE(Open(false)) << problem_.text;
  JobTerms terms = {};
  EXPECT_FALSE(ReadTerms(&place_, &terms));
  ClosePlace(&place_);
  ASSERT_TRUE(Open(true)) << problem_.text;
  for (const char* text : {"", "x", "1 2 3 4 5\n", "1 2 x 4 5 /a\n"}) {
    std::ofstream(state_ / "job-12/terms") << text;
    EXPECT_FALSE(ReadTerms(&place_, &terms)) << text;
  }
  ClosePlace(&place_);
}

}  // namespace
