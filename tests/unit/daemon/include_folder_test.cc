// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/programs/include_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace sluice::worker {
namespace {

namespace fs = std::filesystem;

pb::BuildProgram Files(const std::vector<std::string>& paths) {
  pb::BuildProgram build;
  for (const std::string& path : paths) {
    build.add_include_files()->set_path(path);
    build.mutable_include_files(build.include_files_size() - 1)->set_contents("of " + path);
  }
  return build;
}

std::string Rewrite(const IncludeFolder& folder, const std::string& options,
                    const std::vector<std::string>& directories) {
  pb::BuildProgram build;
  for (const std::string& directory : directories) build.add_include_directories(directory);
  return folder.RewriteOptions(options, build.include_directories());
}

// Files lie under the folder at their paths, the options lead there, and nothing is left
// afterwards.
TEST(IncludeFolderTest, FilesComeAndGo) {
  std::string root;
  {
    IncludeFolder folder;
    ASSERT_TRUE(folder.Write(Files({"/app/x.h", "/app/sub/y.h"}).include_files()).ok());
    const std::string options = Rewrite(folder, "-I/app", {"/app"});
    ASSERT_EQ(options.substr(0, 2), "-I");
    root = options.substr(2, options.size() - 2 - std::string("/app").size());
    std::ifstream in(root + "/app/sub/y.h");
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "of /app/sub/y.h");
  }
  EXPECT_FALSE(fs::exists(root));
}

// A path that is not absolute and plain is a violation, and nothing is written for it.
TEST(IncludeFolderTest, OtherPathsAreRefused) {
  for (const std::string& path :
       {std::string(""), std::string("/"), std::string("relative"), std::string("/a/../b"),
        std::string("/.."), std::string("/a//b"), std::string("/a/./b"), std::string("/a/"),
        std::string("/a\0b", 4), std::string("//etc/passwd")}) {
    IncludeFolder folder;
    EXPECT_FALSE(folder.Write(Files({path}).include_files()).ok()) << path;
  }
}

// Only whole paths in the options are moved, the longest first, in every way they are written.
TEST(IncludeFolderTest, OptionsAreRewrittenByWholePaths) {
  IncludeFolder folder;
  ASSERT_TRUE(folder.Write(Files({"/inc/x.h"}).include_files()).ok());
  const std::string root =
      Rewrite(folder, "/inc", {"/inc"}).substr(0, Rewrite(folder, "/inc", {"/inc"}).size() - 4);
  const std::vector<std::string> directories = {"/inc", "/inc/deep"};
  EXPECT_EQ(Rewrite(folder, "-I/inc -I /inc/deep -I\"/inc\"", directories),
            "-I" + root + "/inc -I " + root + "/inc/deep -I\"" + root + "/inc\"");
  EXPECT_EQ(Rewrite(folder, "-I/include -DX=a/inc -I/other/inc", directories),
            "-I/include -DX=a/inc -I/other/inc");
  EXPECT_EQ(Rewrite(folder, "-I/inc/more", directories), "-I" + root + "/inc/more");
}

bool LinksToFoldersAreMade() {
  const fs::path link = fs::path(::testing::TempDir()) / "include_folder_test.link";
  std::error_code error;
  fs::remove(link, error);
  fs::create_directory_symlink(".", link, error);
  const bool made = !error;
  fs::remove(link, error);
  return made;
}

// A folder whose path has a blank has a second name in the options, without quotes around it but
// for those of a value; it is the same folder, below the same one.
TEST(IncludeFolderTest, BlanksInPaths) {
  if (!LinksToFoldersAreMade()) GTEST_SKIP() << "this user may make no links to folders here";
  IncludeFolder folder;
  ASSERT_TRUE(folder.Write(Files({"/my app/x.h", "/y.h"}).include_files()).ok());
  pb::BuildProgram build;
  for (const char* directory : {"/my app", "/my", "/none there"})
    build.add_include_directories(directory);
  ASSERT_TRUE(folder.MakeDirectories(build.include_directories()).ok());
  const auto rewrite = [&](const std::string& options) {
    return folder.RewriteOptions(options, build.include_directories());
  };
  const std::string second = rewrite("/my app");
  EXPECT_EQ(second.find(' '), std::string::npos);
  EXPECT_EQ(rewrite("-I \"/my app\" -I'/my app' -w"), "-I " + second + " -I" + second + " -w");
  EXPECT_EQ(rewrite("-DX=\\\"/my app\\\""), "-DX=\\\"" + second + "\\\"");
  EXPECT_EQ(rewrite("-D \"X=/my app/x.h\""), "-D \"X=" + second + "/x.h\"");
  std::ifstream beside(second + "/x.h");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(beside), {}), "of /my app/x.h");
  std::ifstream above(second + "/../y.h");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(above), {}), "of /y.h");
}

// A file that a source names by an absolute path of its own host is found below the folder, and is
// the same file there.
TEST(IncludeFolderTest, AbsolutePathsOfTheClientsHost) {
  IncludeFolder folder;
  ASSERT_TRUE(folder.Write(Files({"/app/x.h"}).include_files()).ok());
  const std::string options = Rewrite(folder, "-DA=/b -I /", {"/"});
  ASSERT_EQ(options.substr(0, 10), "-DA=/b -I ");
  const std::string root = options.substr(10);
  std::ifstream in(root + "/.sluice-host/app/x.h");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "of /app/x.h");
  EXPECT_TRUE(fs::equivalent(root + "/app/x.h", root + "/.sluice-host/app/x.h"));
}

pb::BuildProgram Steps(const std::vector<std::pair<std::string, std::string>>& steps) {
  pb::BuildProgram build;
  for (const auto& [path, target] : steps) {
    build.add_include_steps()->set_path(path);
    build.mutable_include_steps()->rbegin()->set_link_target(target);
  }
  return build;
}

std::string RootOf(const IncludeFolder& folder) {
  const std::string root = Rewrite(folder, "/", {"/"});
  return root.substr(0, root.find_last_not_of('/') + 1);
}

// Links and folders are made below the folder, and files may lie behind links.
TEST(IncludeFolderTest, LinksAndFolders) {
  if (!LinksToFoldersAreMade()) GTEST_SKIP() << "this user may make no links to folders here";
  IncludeFolder folder;
  const pb::BuildProgram steps = Steps({{"/v2/kernels", ""},
                                        {"/app/kernels", "/v2/kernels"},
                                        {"/app/x.h", "/v2/x.h"},
                                        {"/app/root", "/"}});
  ASSERT_TRUE(folder.MakeSteps(steps.include_steps()).ok());
  ASSERT_TRUE(
      folder.Write(Files({"/v2/x.h", "/app/kernels/y.h", "/app/common/z.h"}).include_files()).ok());
  const std::string root = RootOf(folder);
  for (const char* name : {"/app/x.h", "/app/kernels/../x.h", "/app/root/v2/x.h"}) {
    std::error_code error;
    EXPECT_TRUE(fs::equivalent(root + name, root + "/v2/x.h", error)) << name;
  }
  EXPECT_TRUE(fs::is_regular_file(root + "/v2/kernels/y.h"));
  EXPECT_FALSE(fs::exists(root + "/app/kernels/../common/z.h"));
}

// A link that would lead out of the folder is a violation, and so is one that is made there.
// Nothing is written outside for one that leads in a circle or is in a file's way.
TEST(IncludeFolderTest, LinksStayInTheFolder) {
  for (const auto& [path, target] : {std::pair<std::string, std::string>{"/a", "/../b"},
                                     {"/a", "b"},
                                     {"/a", "/b/"},
                                     {"/a", "/./b"},
                                     {"/a", "//"},
                                     {"/a", std::string("/b\0c", 4)},
                                     {"/../a", "/b"},
                                     {"/../a", ""},
                                     {"a", ""},
                                     {"/", "/b"},
                                     {"", "/b"}}) {
    IncludeFolder folder;
    EXPECT_FALSE(folder.MakeSteps(Steps({{path, target}}).include_steps()).ok())
        << path << " to " << target;
  }
  IncludeFolder folder;
  const pb::BuildProgram steps = Steps(
      {{"/a", "/b"}, {"/b", "/a"}, {"/c", "/c"}, {"/d/e", "/d"}, {"/a", "/d"}, {"/a/f", "/d"}});
  EXPECT_TRUE(folder.MakeSteps(steps.include_steps()).ok());
  EXPECT_TRUE(folder.Write(Files({"/a/x", "/b", "/c/x/y", "/d/e/e/x"}).include_files()).ok());
  // Behind the link, or in folders of these names where there are no links.
  EXPECT_TRUE(fs::exists(RootOf(folder) + (LinksToFoldersAreMade() ? "/d/x" : "/d/e/e/x")));
}

// Without files nothing is made and nothing is changed.
TEST(IncludeFolderTest, NoFilesNoFolder) {
  IncludeFolder folder;
  ASSERT_TRUE(folder.Write(pb::BuildProgram().include_files()).ok());
  EXPECT_EQ(Rewrite(folder, "-I/inc", {"/inc"}), "-I/inc");
}

// Files that get into each other's way are no reason to fail, or to write elsewhere.
TEST(IncludeFolderTest, FileAndFolderOfOneName) {
  IncludeFolder folder;
  EXPECT_TRUE(folder.Write(Files({"/a", "/a/b", "/a"}).include_files()).ok());
}

}  // namespace
}  // namespace sluice::worker
