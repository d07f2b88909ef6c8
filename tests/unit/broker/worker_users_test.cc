// SPDX-License-Identifier: Apache-2.0
#include "broker/children/worker_users.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <system_error>

#include "broker/os/process.h"

namespace sluice::broker {
namespace {

class WorkerUsersTest : public testing::Test {
 protected:
  WorkerUsersTest() {
    char path[] = "/tmp/sluice-test-XXXXXX";
    directory_ = ::mkdtemp(path);
    config_.worker.cache_directory = directory_;
  }
  ~WorkerUsersTest() override {
    std::error_code error;  // Another is removing what was forgotten, perhaps.
    std::filesystem::remove_all(directory_, error);
  }

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

// A user who could rename the contents of the folder of caches could put programs into others'
// workers.
TEST_F(WorkerUsersTest, TheRootIsNobodyElses) {
  ASSERT_EQ(::chmod(directory_.c_str(), 0777), 0);
  EXPECT_EQ(Users().For("uid:7").status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_EQ(::chmod(directory_.c_str(), 0755), 0);
  EXPECT_TRUE(Users().For("uid:7").ok());
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder to somebody else";
  ASSERT_EQ(::chown(directory_.c_str(), 65534, 65534), 0);
  EXPECT_EQ(Users().For("uid:7").status().code(), absl::StatusCode::kFailedPrecondition);
  // Nor is a link of theirs taken.
  config_.worker.cache_directory = directory_ + "/link";
  std::filesystem::create_symlink("/var", config_.worker.cache_directory);
  ASSERT_EQ(::lchown(config_.worker.cache_directory.c_str(), 65534, 65534), 0);
  EXPECT_EQ(Users().For("uid:7").status().code(), absl::StatusCode::kFailedPrecondition);
}

// As workers are other users, whatever the umask is.
TEST_F(WorkerUsersTest, UmaskDoesNotCloseTheRoot) {
  config_.worker.cache_directory = directory_ + "/new";
  const mode_t before = ::umask(077);
  EXPECT_TRUE(Users().For("uid:7").ok());
  ::umask(before);
  struct stat info;
  ASSERT_EQ(::stat(config_.worker.cache_directory.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0755u);
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

// A container has its name from one broker: what is left of it goes with the next one, unless a
// worker of its still runs.
TEST_F(WorkerUsersTest, ContainersCachesGoWithTheirBroker) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root's daemon can change its workers' user";
  const std::string container = "container:1000_0123456789abcdef";
  const std::string of_tenant = "tenant:lab_1000_0123456789abcdef";
  WorkerUsers users = Users();
  std::set<std::string> caches;
  std::set<uid_t> uids;
  for (const std::string& name :
       {container, of_tenant, std::string("tenant:lab_1000"), std::string("uid:1000")}) {
    const auto tenant = users.For(name);
    ASSERT_TRUE(tenant.ok()) << tenant.status();
    caches.insert(tenant->cache_directory);
    uids.insert(tenant->user->uid);
  }
  EXPECT_EQ(caches.size(), 4u);
  EXPECT_EQ(uids.size(), 4u);
  ASSERT_TRUE(Users().For("uid:7").ok());
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/container-1000_0123456789abcdef"));
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/tenant-lab_1000_0123456789abcdef"));
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/tenant-lab_1000"));
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/uid-1000"));
}

// Names without end do not fill the disk: of more than are remembered those go that were not used
// for longest, but for those whose processes live, and none of another kind. A cache that was given
// back is nobody's.
TEST_F(WorkerUsersTest, OldestIdentitiesAreForgotten) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root's daemon can change its workers' user";
  constexpr uid_t kMost = WorkerUsers::kMostIdentities;
  const auto place = [this](const std::string& name) { return directory_ + "/" + name; };
  const auto make = [&](const std::string& name, uid_t uid) {
    ASSERT_EQ(::mkdir(place(name).c_str(), 0700), 0);
    ASSERT_EQ(::chown(place(name).c_str(), uid, uid), 0);
  };
  make("uid-5", kFirstTenantUid + 1);
  make("net-busy", kFirstTenantUid + 2);
  make("net-known", kFirstTenantUid + 3);
  for (uid_t i = 4; i < kMost + 2; ++i) make("net-" + std::to_string(i), kFirstTenantUid + i);
  int is_that_user[2];
  ASSERT_EQ(::pipe2(is_that_user, O_CLOEXEC), 0);
  const pid_t busy = ::fork();
  if (busy == 0) {
    if (::setuid(kFirstTenantUid + 2) != 0 || ::write(is_that_user[1], "x", 1) != 1) ::_exit(1);
    while (true) ::pause();
  }
  ASSERT_GT(busy, 0);
  ::close(is_that_user[1]);
  char x;
  EXPECT_EQ(::read(is_that_user[0], &x, 1), 1);
  ::close(is_that_user[0]);
  WorkerUsers users = Users();
  ASSERT_TRUE(users.For("net:known").ok());
  const auto made = users.For("net:one more");
  EXPECT_EQ(::kill(busy, SIGKILL), 0);
  EXPECT_EQ(::waitpid(busy, nullptr, 0), busy);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->user->uid, kFirstTenantUid + kMost + 2);
  size_t left = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory_))
    left += entry.path().filename().string().starts_with("net-") ? 1 : 0;
  EXPECT_LT(left, kMost);
  EXPECT_GT(left, kMost / 2);
  for (const char* name : {"uid-5", "net-busy", "net-known", "net-one%20more"}) {
    EXPECT_TRUE(std::filesystem::exists(place(name))) << name;
  }
  EXPECT_TRUE(std::filesystem::exists(place("net-" + std::to_string(kMost + 1))));
  EXPECT_EQ(Users().For("net:yet another")->user->uid, made->user->uid + 1);
}

// An entry that another daemon has added to the record since it was read is seen.
TEST_F(WorkerUsersTest, TheRecordIsReadAgain) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root's daemon can change its workers' user";
  WorkerUsers one = Users();
  WorkerUsers two = Users();
  std::set<uid_t> uids;
  for (int i = 0; i < 5; ++i) {
    for (WorkerUsers* users : {&one, &two}) {
      const std::string name = "net:" + std::to_string(uids.size());
      const auto made = users->For(name);
      ASSERT_TRUE(made.ok()) << made.status();
      EXPECT_TRUE(uids.insert(made->user->uid).second) << name;
      // So that no two changes have one time, however coarse the clock is.
      const timespec times[] = {{0, UTIME_OMIT}, {static_cast<time_t>(uids.size()), 0}};
      ASSERT_EQ(::utimensat(AT_FDCWD, directory_.c_str(), times, 0), 0);
    }
  }
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
  config_.worker.user = "nobody";
  WorkerUsers users = Users();
  const auto one = users.For("uid:1000");
  const auto two = users.For("uid:1001");
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(one->user->uid, two->user->uid);
  EXPECT_EQ(users.Describe(), "nobody");
  config_.worker.user = "no-such-user-here";
  EXPECT_FALSE(WorkerUsers::Create(config_).ok());
}

}  // namespace
}  // namespace sluice::broker
