// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/programs/compile_cache.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

namespace sluice::worker {
namespace {

namespace fs = std::filesystem;

// A folder as PoCL's, with programs of 1000 bytes each.
class CompileCacheTest : public testing::Test {
 protected:
  // Not by MakeTemporaryFolder: each worker that starts beside this test sweeps folders of that
  // name away which nobody holds.
  void SetUp() override {
    std::string pattern = testing::TempDir() + "sluice-compile-cache-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { fs::remove_all(root_); }

  static void Write(const fs::path& path, size_t bytes) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << std::string(bytes, 'x');
  }
  // One that was used so many hours ago.
  void AddProgram(const std::string& name, int hours) const {
    const fs::path program = root_ / "AB" / name;
    Write(program / "program.bc", 400);
    Write(program / "k" / "4-1-1" / "k.so", 600);
    Write(program / "last_accessed", 0);
    fs::last_write_time(program / "last_accessed",
                        fs::file_time_type::clock::now() - std::chrono::hours(hours));
  }
  bool Has(const std::string& name) const { return fs::exists(root_ / "AB" / name); }

  fs::path root_;
};

// Within the bounds nothing is removed; beyond them what was used longest ago, whole, to some way
// below them.
TEST_F(CompileCacheTest, OldestGo) {
  for (int i = 0; i < 8; ++i) AddProgram("used-" + std::to_string(i), i);
  CompileCache(root_, 8000).AfterBuild();
  EXPECT_TRUE(Has("used-7"));
  CompileCache(root_, 7000).AfterBuild();
  for (int i = 0; i < 8; ++i) EXPECT_EQ(Has("used-" + std::to_string(i)), i < 5) << i;
  CompileCache(root_, 8000, /*most_programs=*/4).AfterBuild();
  for (int i = 0; i < 8; ++i) EXPECT_EQ(Has("used-" + std::to_string(i)), i < 3) << i;
}

// Files of builds that were ended in the middle count, and go, as programs do.
TEST_F(CompileCacheTest, LeftoversGo) {
  AddProgram("used", 1);
  Write(root_ / "tempfile_x", 3000);
  fs::last_write_time(root_ / "tempfile_x",
                      fs::file_time_type::clock::now() - std::chrono::hours(2));
  CompileCache(root_, 2000).AfterBuild();
  EXPECT_TRUE(Has("used"));
  EXPECT_FALSE(fs::exists(root_ / "tempfile_x"));
}

// Links count for nothing, and are removed without what they lead to.
TEST_F(CompileCacheTest, LinksAreNotFollowed) {
  const fs::path elsewhere = root_.native() + "-elsewhere";
  Write(elsewhere / "file", 5000);
  AddProgram("used", 0);
  fs::create_directory_symlink(elsewhere, root_ / "CD");
  fs::create_directory_symlink(elsewhere, root_ / "AB" / "link");
  fs::create_symlink(elsewhere / "file", root_ / "AB" / "used" / "file");
  CompileCache(root_, 2000).AfterBuild();
  EXPECT_TRUE(Has("used") && Has("link"));
  CompileCache(root_, 100).AfterBuild();
  EXPECT_FALSE(Has("used"));
  EXPECT_TRUE(fs::exists(elsewhere / "file"));
  fs::remove_all(elsewhere);
}

// It looks after a session's first build, and then after each so many.
TEST_F(CompileCacheTest, LooksNowAndAgain) {
  CompileCache cache(root_, 500);
  AddProgram("first", 0);
  cache.AfterBuild();
  EXPECT_FALSE(Has("first"));
  AddProgram("second", 0);
  for (int i = 1; i < CompileCache::kBuildsBetweenLooks; ++i) cache.AfterBuild();
  EXPECT_TRUE(Has("second"));
  cache.AfterBuild();
  EXPECT_FALSE(Has("second"));
}

// Without a bound, or a folder that is there, nothing happens.
TEST_F(CompileCacheTest, Unbounded) {
  AddProgram("used", 0);
  CompileCache(root_, 0).AfterBuild();
  EXPECT_TRUE(Has("used"));
  CompileCache("", 1).AfterBuild();
  CompileCache(root_ / "none", 1).AfterBuild();
}

}  // namespace
}  // namespace sluice::worker
