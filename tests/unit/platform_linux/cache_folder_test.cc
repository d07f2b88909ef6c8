// SPDX-License-Identifier: Apache-2.0
#include "broker/children/cache_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "broker/children/worker_users.h"
#include "broker/os/scoped_handle.h"

namespace sluice::os {
namespace {

using broker::BoundCache;
using broker::CacheUse;
using broker::RemoveCache;

namespace fs = std::filesystem;

constexpr uint64_t kPlenty = 1000;  // Files.
constexpr uid_t kTenant = broker::kFirstTenantUid + 77;

class CacheFolderTest : public testing::Test {
 protected:
  CacheFolderTest() {
    char path[] = "/tmp/sluice-test-XXXXXX";
    root_ = ::mkdtemp(path);
    ::chmod(root_.c_str(), 0755);
    cache_ = root_ + "/uid-7";
    fs::create_directory(cache_);
  }
  ~CacheFolderTest() override {
    std::error_code error;
    fs::remove_all(root_, error);
  }

  // A file of so many bytes, used so many seconds ago.
  void Write(const std::string& name, size_t bytes, int64_t age_s) {
    const fs::path path = fs::path(cache_) / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << std::string(bytes, 'x');
    const timespec then = {::time(nullptr) - age_s, 0};
    const timespec times[2] = {then, then};
    ::utimensat(AT_FDCWD, path.c_str(), times, 0);
  }
  bool Has(const std::string& name) const { return fs::exists(fs::path(cache_) / name); }

  // Gives all of it to a tenant, closed to others.
  void GiveToTenant() {
    for (const auto& entry : fs::recursive_directory_iterator(cache_))
      ::lchown(entry.path().c_str(), kTenant, kTenant);
    ::lchown(cache_.c_str(), kTenant, kTenant);
    ::chmod(cache_.c_str(), 0700);
  }

  std::string root_;
  std::string cache_;
};

// Without what may pass by the modes of files, as the installed service; with what it has.
template <typename Body>
void WithTheUnitsCapabilities(Body body) {
  std::thread([&body] {
    __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2] = {};
    for (const int kept : {CAP_SETUID, CAP_SETGID, CAP_CHOWN, CAP_KILL, CAP_DAC_READ_SEARCH})
      data[0].effective = data[0].permitted |= 1u << kept;
    ASSERT_EQ(::syscall(SYS_capset, &header, data), 0);
    body();
  }).join();
}

// The program that was used longest ago goes, with all its files; one in use stays.
TEST_F(CacheFolderTest, TheOldestGoes) {
  Write("pocl/kcache/AA/old/program.bc", 400'000, 3000);
  Write("pocl/kcache/AA/old/k/0-0-0/k.so", 400'000, 3000);
  Write("pocl/kcache/BB/new/program.bc", 400'000, 10);
  Write("pocl/kcache/BB/new/k/0-0-0/k.so", 400'000, 5000);  // Of a program that is in use.
  Write("nv/ComputeCache/index", 100'000, 20);
  EXPECT_EQ(BoundCache(cache_, 3'000'000, kPlenty).removed_bytes, 0u);
  const CacheUse use = BoundCache(cache_, 1'500'000, kPlenty);
  EXPECT_TRUE(use.done);
  EXPECT_GE(use.removed_bytes, 800'000u);
  EXPECT_LE(use.bytes, 1'500'000u);
  EXPECT_FALSE(Has("pocl/kcache/AA/old"));
  EXPECT_TRUE(Has("pocl/kcache/BB/new/k/0-0-0/k.so"));
  EXPECT_TRUE(Has("nv/ComputeCache/index"));
}

// Links are removed, and nothing that they lead to.
TEST_F(CacheFolderTest, LinksAreNotFollowed) {
  const std::string outside = root_ + "/outside";
  fs::create_directory(outside);
  std::ofstream(outside + "/file") << std::string(100'000, 'x');
  fs::create_directory_symlink(outside, cache_ + "/folder");
  fs::create_symlink(outside + "/file", cache_ + "/file");
  EXPECT_LT(BoundCache(cache_, 1 << 20, kPlenty).bytes, 50'000u);
  EXPECT_TRUE(RemoveCache(cache_));
  EXPECT_TRUE(fs::exists(outside + "/file"));
  EXPECT_FALSE(fs::exists(cache_));
  // Nor is one in the place of the folder itself.
  fs::create_directory_symlink(outside, cache_);
  EXPECT_EQ(BoundCache(cache_, 0, 0).removed_bytes, 0u);
  EXPECT_TRUE(fs::exists(outside + "/file"));
}

// Folders in folders beyond every path's length, and more files than anybody has.
TEST_F(CacheFolderTest, DepthAndNumberAreBounded) {
  UniqueFd at(::open(cache_.c_str(), O_RDONLY | O_DIRECTORY));
  const std::string name(200, 'd');
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(::mkdirat(at.get(), name.c_str(), 0700), 0);
    at = UniqueFd(::openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY));
    ASSERT_TRUE(at.valid());
  }
  at.reset();
  EXPECT_GE(BoundCache(cache_, 100 << 20, kPlenty).files, 300u);
  for (int i = 0; i < 1500; ++i) Write("many/" + std::to_string(i), 1, 0);
  const CacheUse use = BoundCache(cache_, 100 << 20, kPlenty);
  EXPECT_TRUE(use.done);
  EXPECT_TRUE(fs::is_empty(cache_));
}

// A folder that another user has closed to all, to himself too, is bounded and removed without a
// right to others' files, which the installed service does not have.
TEST_F(CacheFolderTest, TheUnitsCapabilitiesAreEnough) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files to others";
  Write("pocl/kcache/AA/old/program.bc", 400'000, 3000);
  Write("closed/file", 100'000, 1);
  ::chmod((cache_ + "/closed").c_str(), 0);
  GiveToTenant();
  WithTheUnitsCapabilities([this] {
    std::error_code error;
    fs::remove_all(cache_, error);
    EXPECT_TRUE(error) << "the test's thread may remove others' files";
    const CacheUse use = BoundCache(cache_, 300'000, kPlenty);
    EXPECT_TRUE(use.done);
    EXPECT_GE(use.removed_bytes, 400'000u);
    EXPECT_TRUE(RemoveCache(cache_));
  });
  EXPECT_FALSE(fs::exists(cache_));
}

// The owner's rights are all that is used: what is another's stays.
TEST_F(CacheFolderTest, OthersFilesStay) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files to others";
  Write("mine/file", 1000, 1);
  GiveToTenant();
  fs::create_directory(cache_ + "/roots");
  ::chmod((cache_ + "/roots").c_str(), 0700);
  std::ofstream(cache_ + "/roots/file") << "x";
  EXPECT_FALSE(BoundCache(cache_, 0, 0).done);
  EXPECT_TRUE(Has("roots/file"));
  EXPECT_FALSE(Has("mine"));
}

// The identities that a service has forgotten go with their folders (worker_users.h).
TEST_F(CacheFolderTest, ForgottenCachesGoInTheService) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files to others";
  const std::string gone = root_ + "/.gone-1";
  cache_ = gone;
  fs::create_directory(cache_);
  Write("pocl/kcache/AA/old/program.bc", 1000, 1);
  GiveToTenant();
  broker::Config config;
  config.worker.cache_directory = root_;
  WithTheUnitsCapabilities([&config] {
    absl::StatusOr<broker::WorkerUsers> users = broker::WorkerUsers::Create(config);
    ASSERT_TRUE(users.ok()) << users.status();
    EXPECT_TRUE(users->For("uid:9").ok());  // Reads what is there.
  });
  for (int i = 0; i < 1000 && fs::exists(gone); ++i) ::usleep(10'000);
  EXPECT_FALSE(fs::exists(gone));
}

}  // namespace
}  // namespace sluice::os
