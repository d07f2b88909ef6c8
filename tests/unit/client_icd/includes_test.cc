// SPDX-License-Identifier: Apache-2.0
#include "client_icd/includes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace sluice {
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
  // What is not there is left to the compiler.
  EXPECT_EQ(ScanIncludes({"#include \"" + root_ + "/no.h\"\n"}, "-w", root_).options, "-w");
}

// A file that is only asked for is taken, or the answer would be another.
TEST_F(IncludesTest, HasInclude) {
  const std::string a = Write("inc/a.h", "");
  const IncludeScan scan = ScanIncludes({"#if defined(X) && __has_include(<a.h>)\n#endif\n"},
                                        "-I " + root_ + "/inc", root_);
  EXPECT_TRUE(Has(scan, a));
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

// What is no regular file, or not there, is left out; macros that name each other come to an end.
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
  for (const char* line : {"%:include \"x.h\"", "# /*y*/ include \"x.h\"",
                           "/**/ %: include /*a*/ /*b*/ \"x.h\"", "#include /**/ <x.h>"}) {
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

// Paths are cleaned by their text alone, and never leave the root.
TEST(NormalisePathTest, Cleans) {
  EXPECT_EQ(NormalisePath("/a//b/./c/../d/", ""), "/a/b/d");
  EXPECT_EQ(NormalisePath("../x", "/a/b"), "/a/x");
  EXPECT_EQ(NormalisePath("/../../x", ""), "/x");
  EXPECT_EQ(NormalisePath("..", "/a"), "/");
  EXPECT_EQ(NormalisePath("x", ""), "");
}

}  // namespace
}  // namespace sluice
