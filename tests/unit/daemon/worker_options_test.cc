// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/worker_options.h"

#include <gtest/gtest.h>

namespace sluice::worker {
namespace {

WorkerOptions Parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "sluice-worker");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  absl::StatusOr<WorkerOptions> options =
      ParseWorkerOptions(static_cast<int>(argv.size()), argv.data());
  EXPECT_TRUE(options.ok()) << options.status();
  return options.ok() ? *options : WorkerOptions();
}

TEST(WorkerOptionsTest, LimitsAreTaken) {
  const Limits limits = Parse({"--limit-memory=5", "--limit-objects=6", "--limit-program-bytes=7",
                               "--limit-in-flight=8", "--limit-build-ms=9", "--limit-kernel-ms=10"})
                            .session.limits;
  EXPECT_EQ(limits.memory_bytes, 5u);
  EXPECT_EQ(limits.objects, 6u);
  EXPECT_EQ(limits.program_bytes, 7u);
  EXPECT_EQ(limits.in_flight, 8u);
  EXPECT_EQ(limits.build_ms, 9u);
  EXPECT_EQ(limits.kernel_ms, 10u);
}

// Each key of sluiced.toml says so; a worker's own default must not stand in for it.
TEST(WorkerOptionsTest, ZeroIsNoLimit) {
  const Limits limits = Parse({"--limit-memory=0", "--limit-objects=0", "--limit-program-bytes=0",
                               "--limit-in-flight=0", "--limit-build-ms=0", "--limit-kernel-ms=0"})
                            .session.limits;
  Quota quota(limits);
  EXPECT_TRUE(quota.ChargeMemory(uint64_t{1} << 40));
  for (int i = 0; i < 3; ++i) quota.AddCommand();
  EXPECT_TRUE(quota.TakesCommands());
  EXPECT_EQ(limits.objects, kNoLimit);
  EXPECT_EQ(limits.program_bytes, kNoLimit);
  EXPECT_EQ(limits.build_ms, 0u);
  EXPECT_EQ(limits.kernel_ms, 0u);
}

TEST(WorkerOptionsTest, OthersAreRefused) {
  std::string name = "sluice-worker", bad = "--limit-memory=much";
  char* argv[] = {name.data(), bad.data()};
  EXPECT_FALSE(ParseWorkerOptions(2, argv).ok());
}

}  // namespace
}  // namespace sluice::worker
