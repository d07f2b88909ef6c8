// SPDX-License-Identifier: Apache-2.0
#include "client_icd/program_headers/includes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace sluice::client {
namespace {

class IncludesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/includes_test.XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = std::filesystem::canonical(pattern).string();
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string Write(const std::string& name, const std::string& contents) {
    const std::string path = root_ + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << contents;
    return path;
  }

  void Link(const std::string& name, const std::string& target) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + "/" + name).parent_path());
    std::filesystem::create_symlink(target, root_ + "/" + name);
  }

  // "path -> target", or "path" for a folder.
  static std::vector<std::string> StepsOf(const IncludeScan& scan) {
    std::vector<std::string> all;
    for (const IncludeStep& step : scan.steps)
      all.push_back(step.link_target.empty() ? step.path : step.path + " -> " + step.link_target);
    return all;
  }

  static bool Has(const IncludeScan& scan, const std::string& path) {
    return std::any_of(scan.files.begin(), scan.files.end(),
                       [&](const FoundInclude& f) { return f.path == path; });
  }

  std::string root_;
};

// Without includes nothing is sent and the options stay as they were, byte for byte.
TEST_F(IncludesTest, NothingToDo) {
  const std::string options = "  -D X=1  -cl-fast-relaxed-math\t-DY=\"a b\" ";
  const IncludeScan scan = ScanIncludes({"kernel void f(void) {}"}, options, root_);
  EXPECT_EQ(scan.options, options);
  EXPECT_TRUE(scan.files.empty());
  EXPECT_TRUE(scan.directories.empty());
}

// A literal include is found in the first -I folder that has it, with the application's contents.
TEST_F(IncludesTest, FirstFolderWins) {
  Write("a/other.h", "");
  const std::string first = Write("b/x.h", "first");
  Write("c/x.h", "second");
  const IncludeScan scan = ScanIncludes(
      {"#include \"x.h\"\n"}, "-I " + root_ + "/a -I" + root_ + "/b -I " + root_ + "/c", root_);
  ASSERT_EQ(scan.files.size(), 1u);
  EXPECT_EQ(scan.files[0].path, first);
  EXPECT_EQ(scan.files[0].contents, "first");
  EXPECT_EQ(scan.directories, (std::vector<std::string>{root_ + "/a", root_ + "/b", root_ + "/c"}));
}

// A file that is named by its absolute path is taken too, and what it includes; the sources reach
// it below a folder that the options name.
TEST_F(IncludesTest, AbsolutePaths) {
  const std::string c = Write("other/c.h", "");
  const std::string a = Write("inc/a.h", "#include \"b.h\"\n#include \"" + c + "\"\n");
  const std::string b = Write("inc/b.h", "");
  const IncludeScan scan = ScanIncludes({"#include \"" + a + "\"\n"}, "-w", root_);
  EXPECT_EQ(scan.options, "-w -I /");
  EXPECT_EQ(scan.directories, std::vector<std::string>{"/"});
  ASSERT_EQ(scan.files.size(), 3u);
  EXPECT_TRUE(Has(scan, a) && Has(scan, b) && Has(scan, c));
  EXPECT_EQ(scan.files[0].contents, "#include \"b.h\"\n#include \".sluice-host" + c + "\"\n");
  // Headers that are not there are left to the compiler.
  EXPECT_EQ(ScanIncludes({"#include \"" + root_ + "/no.h\"\n"}, "-w", root_).options, "-w");
}

// A file that is only asked for is taken, or the answer would be another.
TEST_F(IncludesTest, HasInclude) {
  const std::string a = Write("inc/a.h", "");
  const IncludeScan scan = ScanIncludes({"#if defined(X) && __has_include(<a.h>)\n#endif\n"},
                                        "-I " + root_ + "/inc", root_);
  EXPECT_TRUE(Has(scan, a));
  const IncludeScan asked_by_macro =
      ScanIncludes({"#define NAME <a.h>\n#if (__has_include(NAME)) && (X)\n#endif\n"},
                   "-I " + root_ + "/inc", root_);
  EXPECT_TRUE(Has(asked_by_macro, a));
}

// Includes of included files are followed, relative to the including file before the -I folders,
// each file once.
TEST_F(IncludesTest, FollowsIncludesOfIncludes) {
  const std::string a = Write("inc/a.h", "#include \"sub/b.h\"\n");
  const std::string b = Write("inc/sub/b.h", "  #  include \"c.h\"\n#include \"../a.h\"\n");
  const std::string near_c = Write("inc/sub/c.h", "");
  const std::string far_c = Write("inc/c.h", "");
  const IncludeScan scan = ScanIncludes({"#include <a.h>"}, "-I " + root_ + "/inc", root_);
  EXPECT_EQ(scan.files.size(), 3u);
  EXPECT_TRUE(Has(scan, a) && Has(scan, b) && Has(scan, near_c));
  EXPECT_FALSE(Has(scan, far_c));
}

// A relative or untidy -I folder is written absolute and normalised in the options, in its quotes
// if it has some.
TEST_F(IncludesTest, RewritesFoldersInTheOptions) {
  const std::string x = Write("my inc/x.h", "");
  const std::string y = Write("inc/y.h", "");
  const IncludeScan scan = ScanIncludes({"#include \"x.h\"\n#include \"y.h\"\n"},
                                        "-DA=1 -I \"my inc\" -Iinc/./ -w", root_);
  EXPECT_EQ(scan.options, "-DA=1 -I \"" + root_ + "/my inc\" -I" + root_ + "/inc -w");
  EXPECT_TRUE(Has(scan, x) && Has(scan, y));
}

// A folder that is reached by links is written as where it lies, and ".." starts there: what is
// found so is sent with no more than the folders that ".." leaves.
TEST_F(IncludesTest, FoldersBehindLinks) {
  const std::string a = Write("v2/kernels/a.h", "#include \"../common/b.h\"\n");
  const std::string b = Write("v2/common/b.h", "");
  Write("app/common/b.h", "another");
  Link("app/kernels", root_ + "/v2/kernels");
  const IncludeScan scan =
      ScanIncludes({"#include \"a.h\"\n"}, "-I " + root_ + "/app/kernels", root_);
  EXPECT_EQ(scan.options, "-I " + root_ + "/v2/kernels");
  ASSERT_EQ(scan.files.size(), 2u);
  EXPECT_TRUE(Has(scan, a) && Has(scan, b));
  const IncludeScan above =
      ScanIncludes({"#include <b.h>\n"}, "-I " + root_ + "/app/kernels/../common", root_);
  EXPECT_EQ(above.options, "-I " + root_ + "/v2/common");
  EXPECT_TRUE(Has(above, b));
}

// A link that a header's name leads through is told of, after the folder that it leads to. For
// workers that know no links the file is there under the name as well.
TEST_F(IncludesTest, LinksOnTheWay) {
  const std::string file = Write("store/x.h", "x");
  Link("app/sub", "../store");
  Link("app/y.h", "sub/x.h");
  const IncludeScan scan =
      ScanIncludes({"#include <sub/x.h>\n#include <y.h>\n"}, "-I " + root_ + "/app", root_);
  ASSERT_EQ(scan.files.size(), 3u);
  EXPECT_TRUE(Has(scan, file) && Has(scan, root_ + "/app/sub/x.h") &&
              Has(scan, root_ + "/app/y.h"));
  const std::vector<std::string> steps = StepsOf(scan);
  const std::string link = root_ + "/app/sub -> " + root_ + "/store";
  const auto folder_at = std::find(steps.begin(), steps.end(), root_ + "/store");
  EXPECT_LT(folder_at, std::find(steps.begin(), steps.end(), link));
  EXPECT_EQ(std::count(steps.begin(), steps.end(), link), 1);
  EXPECT_EQ(std::count(steps.begin(), steps.end(), root_ + "/app/y.h -> " + file), 1);
}

// Links in a circle, and links whose resolution grows without end, lead nowhere.
TEST_F(IncludesTest, LinksWithoutEnd) {
  Write("x.h", "");
  Link("a", "b");
  Link("b", "a");
  Link("l0", ".");
  for (int i = 1; i < 60; ++i) {
    const std::string before = "l" + std::to_string(i - 1);
    Link("l" + std::to_string(i), before + "/" + before);
  }
  EXPECT_TRUE(ScanIncludes({"#include <a/../x.h>\n#include <l59/x.h>\n"}, "-I " + root_, root_)
                  .files.empty());
}

// A folder that a path leaves again is told of, and one that is not there leads nowhere.
TEST_F(IncludesTest, FoldersOnTheWay) {
  const std::string x = Write("x.h", "");
  Write("of/none.h", "");
  const IncludeScan scan = ScanIncludes({"#include <of/../x.h>\n"}, "-I " + root_, root_);
  EXPECT_TRUE(Has(scan, x));
  EXPECT_EQ(StepsOf(scan), std::vector<std::string>{root_ + "/of"});
  for (const char* name : {"missing/../x.h", "x.h/../x.h"}) {
    const std::string source = std::string("#include <") + name + ">\n";
    EXPECT_TRUE(ScanIncludes({source}, "-I " + root_, root_).files.empty()) << name;
  }
}

// Of include_next, and of what asks for it, every folder's file is taken.
TEST_F(IncludesTest, NextFileOfTheName) {
  const std::string one = Write("one/x.h", "#include_next <x.h>\n");
  const std::string two = Write("two/x.h", "#if __has_include_next(NAME)\n");
  const std::string three = Write("three/y.h", "");
  const std::string two_y = Write("two/y.h", "#define NAME \"y.h\"\n");
  const std::string options = "-I " + root_ + "/one -I " + root_ + "/two -I " + root_ + "/three";
  const IncludeScan scan = ScanIncludes({"#include <x.h>\n#include <y.h>\n"}, options, root_);
  EXPECT_EQ(scan.files.size(), 4u);
  EXPECT_TRUE(Has(scan, one) && Has(scan, two) && Has(scan, two_y) && Has(scan, three));
}

// A file found only from the current directory adds that directory to the options.
TEST_F(IncludesTest, CurrentDirectory) {
  const std::string x = Write("kernels/x.h", "");
  const IncludeScan scan = ScanIncludes({"#include \"kernels/x.h\"\n"}, "-w", root_);
  EXPECT_TRUE(Has(scan, x));
  EXPECT_EQ(scan.options, "-w -I " + root_);
  EXPECT_EQ(scan.directories, std::vector<std::string>{root_});
  // Also one that ends with a slash, as the root of a drive of Windows' does.
  const IncludeScan other = ScanIncludes({"#include \"kernels/x.h\"\n"}, "-w", root_ + "/");
  EXPECT_EQ(other.options, scan.options);
  EXPECT_EQ(other.directories, scan.directories);
}

// The form hashcat uses: a folder in a -D value, put together with a name and quoted by a
// function-like macro; also when the directive names a macro that the source defines.
TEST_F(IncludesTest, ComputedIncludesAsHashcatHasThem) {
  const std::string vendor = Write("OpenCL/inc_vendor.h", "");
  const std::string types = Write("OpenCL/inc_types.h", "#include \"inc_vendor.h\"\n");
  const std::string multi = Write("OpenCL/inc_comp_multi.cl", "");
  const std::string source =
      "#ifdef KERNEL_STATIC\n#include M2S(INCLUDE_PATH/inc_types.h)\n#endif\n"
      "#define COMPARE_M M2S(INCLUDE_PATH/inc_comp_multi.cl)\n  #include COMPARE_M\n";
  for (const std::string& value :
       {root_ + "/OpenCL", root_ + "/OpenCL/", "\"" + root_ + "/OpenCL/\""}) {
    const std::string options = "-D KERNEL_STATIC -D INCLUDE_PATH=" + value +
                                " -D XM2S(x)=#x -D M2S(x)=XM2S(x) -D VECT_SIZE=8 -w";
    const IncludeScan scan = ScanIncludes({source}, options, "/");
    EXPECT_EQ(scan.files.size(), 3u) << value;
    EXPECT_TRUE(Has(scan, vendor) && Has(scan, types) && Has(scan, multi)) << value;
    EXPECT_EQ(scan.options, options);
    EXPECT_EQ(scan.directories, std::vector<std::string>{root_ + "/OpenCL"}) << value;
  }
}

// The -D folder of a computed include is normalised in the options, its final slash kept.
TEST_F(IncludesTest, RewritesFolderOfMacro) {
  Write("inc/x.h", "");
  Write("other/y.h", "");
  const IncludeScan scan =
      ScanIncludes({"#include S(DIR/x.h)"}, "-DDIR=" + root_ + "/other/../inc/ -D S(x)=#x", "/");
  EXPECT_EQ(scan.options, "-DDIR=" + root_ + "/inc/ -D S(x)=#x");
  EXPECT_EQ(scan.directories, std::vector<std::string>{root_ + "/inc"});
}

// A macro defined in an included file completes a directive of another.
TEST_F(IncludesTest, MacroFromAnotherFile) {
  const std::string config = Write("config.h", "#define IMPL \"impl.h\"\n");
  const std::string impl = Write("impl.h", "");
  const IncludeScan scan =
      ScanIncludes({"#include IMPL\n#include \"config.h\"\n"}, "-I " + root_, "/");
  EXPECT_TRUE(Has(scan, config) && Has(scan, impl));
}

// A path that is no regular file, or not there, is left out; macros that name each other come to an
// end.
TEST_F(IncludesTest, LeavesOutWhatCannotBeRead) {
  std::filesystem::create_directories(root_ + "/folder.h");
  const IncludeScan scan =
      ScanIncludes({"#include \"folder.h\"\n#include \"missing.h\"\n#include </dev/zero>\n#define "
                    "A B(\n#define B A(\n#include A\n"
                    "#include\n#include \"\"\n#include \"unterminated\n#include ()\n#"},
                   "-I " + root_ + " -I", root_);
  EXPECT_TRUE(scan.files.empty());
}

// An option without its value is only the last one.
TEST_F(IncludesTest, LastOptionWithoutItsValue) {
  for (const char* options : {"-I", "-w -I ", "-D\n", "-I a -D"})
    EXPECT_TRUE(ScanIncludes({""}, options, root_).lacks_value) << options;
  for (const char* options : {"", " ", "-I a", "-Ia", "-D -I", "-DI", "-w", "-D -w"})
    EXPECT_FALSE(ScanIncludes({""}, options, root_).lacks_value) << options;
}

// A directive may be continued on the next line.
TEST_F(IncludesTest, ContinuedLine) {
  const std::string x = Write("x.h", "");
  EXPECT_TRUE(Has(ScanIncludes({"int a;\n#include \\\n \"x.h\"\r\n"}, "-I " + root_, "/"), x));
}

// More files than the bound are not taken.
TEST_F(IncludesTest, RareSpellings) {
  const std::string file = Write("x.h", "");
  for (const char* line :
       {"%:include \"x.h\"", "# /*y*/ include \"x.h\"", "/**/ %: include /*a*/ /*b*/ \"x.h\"",
        "#include /**/ <x.h>", "#import \"x.h\""}) {
    EXPECT_TRUE(Has(ScanIncludes({line}, "-I " + root_, root_), file)) << line;
  }
  for (const char* line : {"a %:include \"x.h\"", "%include \"x.h\"", "#/*include \"x.h\""}) {
    EXPECT_FALSE(Has(ScanIncludes({line}, "-I " + root_, root_), file)) << line;
  }
}

TEST_F(IncludesTest, BoundedCount) {
  std::string all;
  for (size_t i = 0; i < kMaxIncludeFiles + 10; ++i) {
    const std::string name = std::to_string(i) + ".h";
    Write(name, "");
    all += "#include \"" + name + "\"\n";
  }
  EXPECT_EQ(ScanIncludes({all}, "-I " + root_, "/").files.size(), kMaxIncludeFiles);
}

// A single file beyond the total is not taken, and does not keep smaller ones out.
TEST_F(IncludesTest, BoundedBytes) {
  const std::string big = Write("big.h", "");
  std::filesystem::resize_file(big, kMaxIncludeBytes + 1);
  const std::string small = Write("small.h", "x");
  const IncludeScan scan =
      ScanIncludes({"#include \"big.h\"\n#include \"small.h\""}, "-I " + root_, "/");
  EXPECT_FALSE(Has(scan, big));
  EXPECT_TRUE(Has(scan, small));
}

}  // namespace
}  // namespace sluice::client
