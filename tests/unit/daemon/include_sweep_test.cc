// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "daemon/worker/programs/include_folder.h"
#include "daemon/worker/worker_process.h"

namespace sluice::worker {
namespace {

namespace fs = std::filesystem;

google::protobuf::RepeatedPtrField<pb::IncludeFile> OneFile() {
  pb::BuildProgram build;
  build.add_include_files()->set_path("/a/x.h");
  return build.include_files();
}

// In a place of its own for temporary files: workers that start beside this test sweep the usual
// one, and would take what nobody holds.
class IncludeSweepTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "sluice-sweep-test-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    place_ = pattern;
    if (const char* const before = std::getenv("TMPDIR"); before != nullptr) before_ = before;
    ASSERT_EQ(setenv("TMPDIR", place_.c_str(), 1), 0);
  }
  void TearDown() override {
    ASSERT_EQ(before_ ? setenv("TMPDIR", before_->c_str(), 1) : unsetenv("TMPDIR"), 0);
    fs::remove_all(place_);
  }

 private:
  std::string place_;
  std::optional<std::string> before_;
};

// The leavings of a process that did not come to remove them are swept away; folders in use are
// not.
TEST_F(IncludeSweepTest, AbandonedFoldersAreSwept) {
  const auto root_of = [](const IncludeFolder& folder) {
    pb::BuildProgram build;
    build.add_include_directories("/a");
    return folder.RewriteOptions("-I/a", build.include_directories()).substr(2);
  };
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    IncludeFolder abandoned;
    if (!abandoned.Write(OneFile()).ok()) _exit(1);
    const std::string root = root_of(abandoned);
    if (write(ends[1], root.data(), root.size()) < 0) _exit(1);
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  char text[4096];
  const ssize_t size = read(ends[0], text, sizeof(text));
  ASSERT_GT(size, 0);
  const std::string abandoned(text, static_cast<size_t>(size));
  IncludeFolder used;
  ASSERT_TRUE(used.Write(OneFile()).ok());
  ASSERT_TRUE(fs::exists(abandoned));
  IncludeFolder::SweepAbandoned();
  EXPECT_FALSE(fs::exists(abandoned));
  EXPECT_TRUE(fs::exists(root_of(used) + "/x.h"));
  close(ends[0]);
  close(ends[1]);
}

// A folder of ours among the temporary files, with a file in it and a link to `target`.
std::string MakeAbandoned(const fs::path& target) {
  const std::string folder = MakeTemporaryFolder();
  fs::create_directories(folder + "/deep/er");
  std::ofstream(folder + "/deep/er/file") << "text";
  fs::create_directory_symlink(target, folder + "/deep/link");
  return folder;
}

// The sweep removes neither a thing that stands in a folder's place once the folder is held, nor
// the target of a link that was in it.
TEST_F(IncludeSweepTest, OnlyWhatIsHeldIsRemoved) {
  const std::string others = MakeTemporaryFolder();
  std::ofstream(others + "/file") << "text";
  const std::string folder = MakeAbandoned(others);
  const std::string aside = folder + "-aside";
  os::UniqueFd held = HoldFolder(folder);
  ASSERT_TRUE(held.valid());
  fs::rename(folder, aside);
  fs::create_directory_symlink(others, folder);
  RemoveHeldFolder(folder, std::move(held));
  EXPECT_TRUE(fs::exists(others + "/file"));
  EXPECT_TRUE(!fs::exists(aside) || fs::is_empty(aside));
  for (const std::string& one : {folder, aside, others}) fs::remove_all(one);
}

// A folder of ours that could not be held is removed all the same.
TEST_F(IncludeSweepTest, WhatCouldNotBeHeldIsRemoved) {
  const std::string folder = MakeAbandoned("/");
  RemoveHeldFolder(folder, os::UniqueFd());
  EXPECT_FALSE(fs::exists(folder));
}

// However deep the folders of a client's include file are.
TEST_F(IncludeSweepTest, DeepFoldersAreRemoved) {
  std::string root;
  {
    IncludeFolder folder;
    pb::BuildProgram build;
    std::string path;
    for (int i = 0; i < 500; ++i) path += "/d";
    build.add_include_files()->set_path(path + "/x.h");
    build.add_include_directories("/d");
    ASSERT_TRUE(folder.Write(build.include_files()).ok());
    root = folder.RewriteOptions("-I/d", build.include_directories()).substr(2);
    ASSERT_TRUE(fs::exists(root));
  }
  EXPECT_FALSE(fs::exists(root));
  EXPECT_FALSE(fs::exists(fs::path(root).parent_path()));
}

// Another user's folder is not ours to remove, also where we could.
TEST_F(IncludeSweepTest, OthersFoldersAreLeft) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root makes folders of others";
  const std::string folder = MakeAbandoned("/");
  ASSERT_EQ(::chown(folder.c_str(), 54321, 54321), 0);
  EXPECT_FALSE(HoldFolder(folder).valid());
  IncludeFolder::SweepAbandoned();
  EXPECT_TRUE(fs::exists(folder + "/deep/er/file"));
  ASSERT_EQ(::chown(folder.c_str(), ::geteuid(), ::getegid()), 0);
  IncludeFolder::SweepAbandoned();
  EXPECT_FALSE(fs::exists(folder));
}

// Without a place for temporary files nothing is written, least of all below the working folder.
TEST_F(IncludeSweepTest, NoPlaceForTemporaryFiles) {
  ASSERT_EQ(setenv("TMPDIR", "/nowhere/to/be/found", 1), 0);
  IncludeFolder folder;
  pb::BuildProgram build;
  build.add_include_directories("/a");
  EXPECT_TRUE(folder.Write(OneFile()).ok());
  EXPECT_EQ(folder.RewriteOptions("-I/a", build.include_directories()), "-I/a");
}

}  // namespace
}  // namespace sluice::worker
