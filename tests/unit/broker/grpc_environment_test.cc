// SPDX-License-Identifier: Apache-2.0
#include "broker/base/grpc_environment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "broker/os/this_process.h"

namespace sluice::broker {
namespace {

class GrpcEnvironmentTest : public testing::Test {
 protected:
  ~GrpcEnvironmentTest() override { ::unsetenv(kGrpcPollStrategy); }
  static absl::Status CheckWith(const char* value) {
    ::setenv(kGrpcPollStrategy, value, 1);
    return CheckGrpcEnvironment();
  }
};

// As gRPC takes the variable: the first name of the list that it knows, exactly as it writes it.
TEST_F(GrpcEnvironmentTest, AsGrpcTakesIt) {
  for (const char* good : {"all", "epoll1", "poll", "epollex,poll", "legacy,,epoll1", "poll,none"})
    EXPECT_TRUE(CheckWith(good).ok()) << good;
  for (const char* bad : {"", ",", "none", "none,poll", "epollex", "legacy", "poll-cv", "POLL",
                          " poll", "poll ", "epoll11"}) {
    const absl::Status refused = CheckWith(bad);
    ASSERT_FALSE(refused.ok()) << bad;
    EXPECT_NE(refused.message().find(std::string("GRPC_POLL_STRATEGY=") + bad + " leaves gRPC"),
              absl::string_view::npos)
        << refused;
  }
  ::unsetenv(kGrpcPollStrategy);
  EXPECT_TRUE(CheckGrpcEnvironment().ok());
}

// A program of ours drops a value that gRPC aborts for, and no other.
TEST_F(GrpcEnvironmentTest, MendsOnlyWhatIsBad) {
  ::setenv(kGrpcPollStrategy, "poll", 1);
  EXPECT_TRUE(MendGrpcEnvironment().ok());
  EXPECT_EQ(os::EnvironmentVariable(kGrpcPollStrategy), "poll");
  ::setenv(kGrpcPollStrategy, "epollex", 1);
  EXPECT_FALSE(MendGrpcEnvironment().ok());
  EXPECT_EQ(os::EnvironmentVariable(kGrpcPollStrategy), std::nullopt);
}

}  // namespace
}  // namespace sluice::broker
