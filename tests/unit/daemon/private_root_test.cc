// SPDX-License-Identifier: Apache-2.0
// The host as a helper sees it, in children that enter namespaces and a root as helpers do.
#include "platform_linux/helpers/private_root.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "daemon/helpers/own_namespaces.h"

namespace sluice::worker {
namespace {

namespace fs = std::filesystem;

constexpr int kNoNamespaces = 77;

bool Writes(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  ::close(fd);
  return true;
}

bool IsMissing(const std::string& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) != 0 && errno == ENOENT;
}

class PrivateRootTest : public testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer's own thread keeps a process out of new user namespaces";
#endif
    std::string name = (fs::temp_directory_path() / "sluice-root-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    for (const char* below : {"shown", "hidden", "cache"}) fs::create_directory(folder_ / below);
    for (const char* file : {"shown/a", "shown/b", "hidden/c"})
      std::ofstream(folder_ / file) << "text";
    fs::create_symlink("shown", folder_ / "way");
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  std::string At(const char* below) const { return (folder_ / below).string(); }

  // True if `holds` does in a process with that root.
  static void ExpectInside(const os::FileAccess& access, const std::function<bool()>& holds) {
    const pid_t child = ::fork();
    if (child == 0) {
      if (!os::EnterNamespaces(os::Network::kNone).ok()) ::_exit(kNoNamespaces);
      ::_exit(os::EnterPrivateRoot(access).ok() && os::GiveUpCapabilities().ok() && holds() ? 0
                                                                                            : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == kNoNamespaces) GTEST_SKIP() << "this system lets nobody make them";
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }

  fs::path folder_;
};

TEST_F(PrivateRootTest, ShowsWhatIsListedAndNothingElse) {
  os::FileAccess access;
  access.readable = {At("shown"), At("nowhere")};
  ExpectInside(access, [this] {
    return fs::exists(At("shown/a")) && IsMissing(At("hidden")) && IsMissing(At("nowhere")) &&
           IsMissing("/etc") && IsMissing("/usr") && fs::exists("/proc/self/status");
  });
}

TEST_F(PrivateRootTest, OneFileIsShownAloneAndByItsLink) {
  os::FileAccess access;
  access.readable = {At("way/a")};
  ExpectInside(access, [this] {
    return fs::exists(At("way/a")) && fs::is_symlink(At("way")) && fs::exists(At("shown/a")) &&
           IsMissing(At("shown/b"));
  });
}

TEST_F(PrivateRootTest, OnlyWhatIsWritableIsWritten) {
  os::FileAccess access;
  access.readable = {folder_.string()};
  access.writable = {At("cache")};
  ExpectInside(access, [this] {
    return Writes(At("cache/new")) && !Writes(At("shown/new")) && !Writes(At("shown/a")) &&
           !Writes("/new") && ::mkdir("/folder", 0700) != 0;
  });
  if (IsSkipped()) return;
  EXPECT_TRUE(fs::exists(At("cache/new")));
}

// A tenant that could lay a link in its own folder would see what it leads to.
TEST_F(PrivateRootTest, LinksBelowAWritableFolderShowNothing) {
  fs::create_symlink("../hidden", folder_ / "cache/link");
  os::FileAccess access;
  access.writable = {At("cache")};
  access.readable = {At("cache/link"), At("shown/../cache/link")};
  ExpectInside(access,
               [this] { return fs::is_symlink(At("cache/link")) && IsMissing(At("hidden")); });
}

TEST_F(PrivateRootTest, DevicesAreUsedAndNothingElseIs) {
  os::FileAccess access;
  access.devices = {"/dev/null"};
  ExpectInside(access, [] { return Writes("/dev/null") && IsMissing("/dev/zero"); });
}

// Nobody switches a layer off by using it up; and the reason has the name of the setting.
TEST_F(PrivateRootTest, NoNamespaceIsAnError) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!os::EnterNamespaces(os::Network::kNone).ok()) ::_exit(kNoNamespaces);
    std::ofstream("/proc/sys/user/max_user_namespaces") << "0\n";
    ::_exit(os::EnterNamespaces(os::Network::kNone).message() == "user.max_user_namespaces = 0"
                ? 0
                : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoNamespaces) GTEST_SKIP() << "this system lets nobody make them";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace sluice::worker
