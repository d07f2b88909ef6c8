// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/worker_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "broker/os/file_access.h"

namespace sluice::worker {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kStranger = 54321;

// With variables of its own, and all that they name below one folder.
class WorkerFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/sluice-test-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
    ASSERT_EQ(::chmod(name, 0777), 0);
    std::ofstream(folder_ + "/file") << "no folder\n";
    for (const char* variable : kVariables) {
      const char* const value = std::getenv(variable);
      before_[variable] = value != nullptr ? std::optional<std::string>(value) : std::nullopt;
      ::unsetenv(variable);
    }
    Set("HOME", "/home");
  }
  void TearDown() override {
    fs::remove_all(folder_);
    for (const auto& [variable, value] : before_) {
      if (value) ::setenv(variable.c_str(), value->c_str(), 1);
      if (!value) ::unsetenv(variable.c_str());
    }
  }

  void Set(const char* variable, const std::string& below) {
    ::setenv(variable, (folder_ + below).c_str(), 1);
  }
  // As another user finds it, if this one can be another.
  bool StrangerFinds(const std::string& text) {
    const pid_t child = ::fork();
    if (child == 0) {
      const bool changed = ::geteuid() != 0 || ::setuid(kStranger) == 0;
      ::_exit(changed && UnusableFolder().find(text) != std::string::npos ? 0 : 1);
    }
    int status = -1;
    return ::waitpid(child, &status, 0) == child && status == 0;
  }

  static constexpr const char* kVariables[] = {
      "OCL_ICD_VENDORS", "POCL_CACHE_DIR", "XDG_CACHE_HOME", "CUDA_CACHE_PATH", "TMPDIR", "HOME"};
  std::string folder_;
  std::map<std::string, std::optional<std::string>> before_;
};

// A folder that can be made is not missing; a file, or a path below one, is no folder.
TEST_F(WorkerFilesTest, SaysWhatIsInTheWay) {
  EXPECT_EQ(UnusableFolder(), "");
  Set("XDG_CACHE_HOME", "/not/made/yet");
  Set("TMPDIR", "");
  Set("OCL_ICD_VENDORS", "/none");  // No drivers: that is another matter.
  EXPECT_EQ(UnusableFolder(), "");
  Set("TMPDIR", "/file/tmp");
  EXPECT_EQ(UnusableFolder(), "user " + std::to_string(::geteuid()) +
                                  " cannot write temporary files: Not a directory at " + folder_ +
                                  "/file; give access there (TMPDIR=" + folder_ + "/file/tmp)");
  Set("HOME", "/file");
  EXPECT_NE(UnusableFolder().find("temporary"), std::string::npos) << "HOME is not asked";
  Set("XDG_CACHE_HOME", "/file");
  EXPECT_NE(UnusableFolder().find("; set cache_directory in [worker], or give access there (XDG_"),
            std::string::npos);
  Set("POCL_CACHE_DIR", "/cache");
  EXPECT_NE(UnusableFolder().find("temporary"), std::string::npos) << "PoCL's own counts";
  Set("POCL_CACHE_DIR", "/file/cache");
  EXPECT_NE(UnusableFolder().find("; set another POCL_CACHE_DIR, or give access there (POCL_"),
            std::string::npos);
}

// Another user's folder, one behind it, and one that would have to be made in it.
TEST_F(WorkerFilesTest, SaysWhoIsKeptOut) {
  const std::string closed = folder_ + "/closed";
  fs::create_directories(closed + "/deep/vendors");
  ASSERT_EQ(::chmod(closed.c_str(), ::geteuid() == 0 ? 0700 : 0), 0);
  const std::string denied = "Permission denied at " + closed + ";";
  for (const char* variable : {"TMPDIR", "XDG_CACHE_HOME", "POCL_CACHE_DIR"}) {
    for (const char* below : {"/closed", "/closed/deep", "/closed/new"}) {
      Set(variable, below);
      EXPECT_TRUE(StrangerFinds(denied)) << variable << " " << below;
    }
  }
  Set("OCL_ICD_VENDORS", "/closed/deep/vendors");
  EXPECT_TRUE(StrangerFinds("cannot read the list of drivers: " + denied));
  ASSERT_EQ(::chmod(closed.c_str(), 0700), 0);
}

// Compilers look there for headers, too.
TEST_F(WorkerFilesTest, NothingLiesInTheCurrentFolder) {
  const std::filesystem::path before = std::filesystem::current_path();
  Set("TMPDIR", "/tmp");
  std::filesystem::create_directory(folder_ + "/tmp");
  LeaveDaemonsFolder();
  EXPECT_EQ(std::filesystem::current_path(), std::filesystem::canonical(folder_ + "/tmp"));
  std::filesystem::current_path(before);
}

// A worker that puts links to elsewhere where the broker names folders of its identity's cache
// opens nothing for the next.
TEST_F(WorkerFilesTest, LinksOfAnEarlierWorkerOpenNothing) {
  if (os::FileConfinementVersion() == 0) GTEST_SKIP() << "this kernel has no landlock";
  fs::create_directories(folder_ + "/hidden");
  fs::create_directories(folder_ + "/cache");
  std::ofstream(folder_ + "/hidden/file") << "text";
  Set("HOME", "/cache");
  Set("XDG_CACHE_HOME", "/cache");
  Set("CUDA_CACHE_PATH", "/cache/nv");
  Set("TMPDIR", "/cache/tmp");
  const auto in_worker = [](const std::function<bool()>& does) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(ConfineWorkerFiles({}).ok() && does() ? 0 : 1);
    int status = -1;
    return ::waitpid(child, &status, 0) == child && status == 0;
  };
  const auto opens_hidden = [this] { return std::ifstream(folder_ + "/hidden/file").is_open(); };
  EXPECT_TRUE(in_worker([&] { return !opens_hidden(); }));
  EXPECT_TRUE(in_worker([this] {
    return ::rmdir((folder_ + "/cache/nv").c_str()) == 0 &&
           ::symlink("/", (folder_ + "/cache/nv").c_str()) == 0 &&
           ::rmdir((folder_ + "/cache/tmp").c_str()) == 0 &&
           ::symlink((folder_ + "/hidden").c_str(), (folder_ + "/cache/tmp").c_str()) == 0;
  }));
  EXPECT_TRUE(in_worker(
      [&] { return !opens_hidden() && std::ofstream(folder_ + "/cache/file").is_open(); }));
}

}  // namespace
}  // namespace sluice::worker
