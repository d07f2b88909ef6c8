// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/worker_process.h"

#include <gtest/gtest.h>
#include <windows.h>

#include <filesystem>
#include <string>

#include "daemon/worker/programs/include_folder.h"
#include "platform_win/security/account.h"
#include "platform_win/security/trusted_file.h"
#include "platform_win/wide_text.h"

namespace sluice::os {

namespace pb = v1;
namespace {

namespace fs = std::filesystem;

// The holder of a folder keeps it from others, and from being removed, until it lets go.
TEST(WorkerProcessTest, FoldersAreHeld) {
  const std::string folder = worker::MakeTemporaryFolder();
  ASSERT_NE(folder, "");
  EXPECT_EQ(folder.find('\\'), std::string::npos) << folder;
  UniqueFd held = worker::HoldFolder(folder);
  EXPECT_TRUE(held.valid());
  EXPECT_FALSE(worker::HoldFolder(folder).valid());
  std::error_code error;
  fs::remove(folder, error);
  EXPECT_TRUE(fs::exists(folder));
  held.reset();
  EXPECT_TRUE(worker::HoldFolder(folder).valid());
  EXPECT_TRUE(fs::remove(folder, error)) << error.message();
  EXPECT_FALSE(worker::HoldFolder(folder).valid());
}

// A folder is swept away once nobody holds it, with what is in it.
TEST(WorkerProcessTest, AbandonedFoldersAreSwept) {
  const std::string used = worker::MakeTemporaryFolder();
  const std::string abandoned = worker::MakeTemporaryFolder();
  UniqueFd held = worker::HoldFolder(used);
  ASSERT_TRUE(fs::create_directories(abandoned + "/a/b"));
  worker::IncludeFolder::SweepAbandoned();
  EXPECT_FALSE(fs::exists(abandoned));
  EXPECT_TRUE(fs::exists(used));
  held.reset();
  worker::IncludeFolder::SweepAbandoned();
  EXPECT_FALSE(fs::exists(used));
}

// A path that would name something else on Windows, though its parts are plain elsewhere, is not in
// the folder, and is not written.
TEST(WorkerProcessTest, NamesThatLeadElsewhere) {
  for (const char* path : {"/a\\..\\..\\x.h", "/..\\x.h", "/c:/x.h", "/x.h:stream", "/.. /x.h",
                           "/a./x.h", "/a/x.h.", "/a*"}) {
    EXPECT_FALSE(worker::IsPathInFolder(path)) << path;
    pb::BuildProgram build;
    build.add_include_files()->set_path(path);
    build.add_include_directories(path);
    worker::IncludeFolder folder;
    EXPECT_TRUE(folder.Write(build.include_files()).ok());
    EXPECT_TRUE(folder.MakeDirectories(build.include_directories()).ok());
    const std::string root = folder.RewriteOptions("/", [] {
      google::protobuf::RepeatedPtrField<std::string> all;
      *all.Add() = "/";
      return all;
    }());
    int found = 0;
    for (const auto& entry : fs::directory_iterator(root)) {
      found += !entry.path().filename().string().starts_with(".sluice-");
    }
    EXPECT_EQ(found, 0) << path;
  }
  EXPECT_TRUE(worker::IsPathInFolder("/c/Program Files/.x/a b.h"));
}

// A worker's folder is one that its user and trusted ones fill; one of somebody's that is there
// already stays his.
TEST(WorkerProcessTest, FolderOfAUser) {
  const std::string folder = worker::MakeTemporaryFolder() + "/work";
  for (const char* when : {"new", "there already"}) {
    const absl::Status made = MakeFolderOf(OwnSid(), folder);
    EXPECT_TRUE(made.ok()) << when << made;
  }
  EXPECT_TRUE(fs::create_directory(folder + "/mine"));
  EXPECT_TRUE(CheckOnlyTrustedChange(folder, /*or_own_user=*/true).ok());
  std::error_code error;
  fs::remove_all(fs::path(folder).parent_path(), error);
}

}  // namespace
}  // namespace sluice::os
