// SPDX-License-Identifier: Apache-2.0
#include "broker/worker_users.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "broker/os/process.h"

namespace sluice {
namespace {

class WorkerUsersTest : public testing::Test {
 protected:
  WorkerUsersTest() {
    char path[] = "/tmp/sluice-test-XXXXXX";
    directory_ = ::mkdtemp(path);
    config_.cache_directory = directory_;
  }
  ~WorkerUsersTest() override { std::filesystem::remove_all(directory_); }

  WorkerUsers Users() {
    absl::StatusOr<WorkerUsers> users = WorkerUsers::Create(config_);
    EXPECT_TRUE(users.ok()) << users.status();
    return *std::move(users);
  }

  std::string directory_;
  Config config_;
};

// Without root there is one user, the daemon's; with it, every identity has its own.
TEST_F(WorkerUsersTest, IdentitiesAreApart) {
  WorkerUsers users = Users();
  const auto one = users.For("uid:1000");
  const auto two = users.For("uid:1001");
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_NE(one->cache_directory, two->cache_directory);
  if (::geteuid() != 0) {
    EXPECT_FALSE(one->user.has_value());
    GTEST_SKIP() << "only root's daemon can change its workers' user";
  }
  ASSERT_TRUE(one->user.has_value() && two->user.has_value());
  EXPECT_NE(one->user->uid, two->user->uid);
  EXPECT_NE(one->user->uid, users.service()->uid);
  for (const auto* tenant : {&*one, &*two}) {
    EXPECT_GE(tenant->user->uid, kFirstTenantUid);
    EXPECT_LE(tenant->user->uid, kLastTenantUid);
    struct stat info;
    ASSERT_EQ(::stat(tenant->cache_directory.c_str(), &info), 0);
    EXPECT_EQ(info.st_uid, tenant->user->uid);
    EXPECT_EQ(info.st_mode & 0777, 0700u);
  }
}

// An identity has the same user in the next daemon, and a new one none that was ever given out.
TEST_F(WorkerUsersTest, TheCacheIsTheRecord) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root's daemon can change its workers' user";
  const auto first = Users().For("net:somebody");
  ASSERT_TRUE(first.ok());
  WorkerUsers later = Users();
  const auto other = later.For("uid:7");
  const auto again = later.For("net:somebody");
  ASSERT_TRUE(other.ok() && again.ok());
  EXPECT_EQ(again->user->uid, first->user->uid);
  EXPECT_NE(other->user->uid, first->user->uid);
}

// A cache of another user's is thrown away, a link too: whoever owned it may have put code there.
TEST_F(WorkerUsersTest, AnothersCacheIsNotTrusted) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root's daemon can change its workers' user";
  const std::string place = directory_ + "/uid-5";
  ASSERT_EQ(::mkdir(place.c_str(), 0755), 0);
  std::ofstream(place + "/left_behind") << "code";
  ASSERT_EQ(::symlink("/tmp", (directory_ + "/uid-6").c_str()), 0);
  WorkerUsers users = Users();
  ASSERT_TRUE(users.For("uid:5").ok());
  ASSERT_TRUE(users.For("uid:6").ok());
  EXPECT_FALSE(std::filesystem::exists(place + "/left_behind"));
  EXPECT_FALSE(std::filesystem::is_symlink(directory_ + "/uid-6"));
}

// The operator's word holds: one user for all.
TEST_F(WorkerUsersTest, ANamedUserIsEverybodys) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root's daemon can change its workers' user";
  config_.worker_user = "nobody";
  WorkerUsers users = Users();
  const auto one = users.For("uid:1000");
  const auto two = users.For("uid:1001");
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(one->user->uid, two->user->uid);
  EXPECT_EQ(users.Describe(), "nobody");
  config_.worker_user = "no-such-user-here";
  EXPECT_FALSE(WorkerUsers::Create(config_).ok());
}

}  // namespace
}  // namespace sluice
