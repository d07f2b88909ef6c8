// SPDX-License-Identifier: Apache-2.0
extern "C" {
#include "deploy/slurm/job_request.h"
}

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

// The plugin's complaint about it; "" if it is taken.
std::string ProblemOf(const std::string& text) {
  JobRequest request;
  Problem problem;
  const bool good = ReadJobRequest(text.c_str(), &request, &problem);
  EXPECT_EQ(good, problem.text[0] == '\0') << text;
  return problem.text;
}

// All keys are read, in any order, and memory in the units that Slurm has.
TEST(JobRequestTest, ReadsKeys) {
  JobRequest request;
  Problem problem;
  ASSERT_TRUE(ReadJobRequest("mem:4G,sessions:8,share:25", &request, &problem)) << problem.text;
  EXPECT_EQ(request.share, 25u);
  EXPECT_EQ(request.memory_bytes, uint64_t{4} << 30);
  EXPECT_EQ(request.sessions, 8u);
  ASSERT_TRUE(ReadJobRequest("share:100,mem:1KiB", &request, &problem)) << problem.text;
  EXPECT_EQ(request.memory_bytes, 1024u);
  EXPECT_EQ(request.sessions, 0u);
  ASSERT_TRUE(ReadJobRequest("share:1,mem:3t", &request, &problem)) << problem.text;
  EXPECT_EQ(request.memory_bytes, uint64_t{3} << 40);
}

// A wrong request is refused, and the sentence names the key.
TEST(JobRequestTest, RefusesWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "KEY:VALUE"},
      {",", "KEY:VALUE"},
      {"share:25", "both share and mem"},
      {"mem:4G", "both share and mem"},
      {"share:25,,mem:4G", "KEY:VALUE"},
      {"share:25,mem:4G,", "comma"},
      {"share:25,mem:4G,share:25", "share twice"},
      {"share:25,mem:4G,mem:4G", "mem twice"},
      {"share:0,mem:4G", "1 to 100"},
      {"share:101,mem:4G", "1 to 100"},
      {"share: 25,mem:4G", "1 to 100"},
      {"share:18446744073709551617,mem:4G", "1 to 100"},
      {"share:25,mem:0G", "512M or 4G"},
      {"share:25,mem:4", "512M or 4G"},
      {"share:25,mem:G", "512M or 4G"},
      {"share:25,mem:4GB", "512M or 4G"},
      {"share:25,mem:8388608T", "512M or 4G"},
      {"share:25,mem:4G,sessions:10001", "1 to 10000"},
      {"share:25,mem:4G,shares:3", "no \"shares\""},
      {"shar:25,mem:4G", "no \"shar\""},
      {std::string(201, 'x'), "200 characters"},
  };
  for (const auto& [text, words] : cases)
    EXPECT_NE(ProblemOf(text).find(words), std::string::npos) << text << ": " << ProblemOf(text);
  JobRequest request;
  Problem problem;
  EXPECT_FALSE(ReadJobRequest(nullptr, &request, &problem));
}

// A log and a terminal show what a user wrote as text, however long it is and whatever is in it.
TEST(JobRequestTest, ShowsTextAlone) {
  const std::string problem = ProblemOf("share:\x1b[31m\xff\n" + std::string(100, 'y') + ",mem:4G");
  EXPECT_EQ(problem.find_first_of("\x1b\xff\n"), std::string::npos);
  EXPECT_NE(problem.find("?[31m??yyy"), std::string::npos) << problem;
  EXPECT_LT(problem.size(), 150u);
}

}  // namespace
