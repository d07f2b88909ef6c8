// SPDX-License-Identifier: Apache-2.0
// The files that programs include: the application's own, wherever the compiler runs.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include "tests/conformance/harness/source_fixture.h"

namespace sluice::conformance {
namespace {

// A folder of the application's own file system, as others use for scenes like this.
class Folder {
 public:
  Folder() {
    const std::filesystem::path temporary = std::filesystem::temp_directory_path();
    std::random_device random;
    for (int tries = 0; tries < 100; ++tries) {
      const auto path = temporary / ("sluice_conformance_" + std::to_string(random()));
      std::error_code taken;
      if (!std::filesystem::create_directory(path, taken)) continue;
      path_ = path.generic_string();
      return;
    }
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  void Put(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path_ + "/" + name).parent_path());
    std::ofstream(path_ + "/" + name) << text;
  }
  // False where this user may make no links, as on Windows.
  bool Link(const std::string& name, const std::string& target) const {
    std::error_code error;
    const std::filesystem::path link = path_ + "/" + name;
    std::filesystem::create_directories(link.parent_path());
    std::filesystem::create_symlink(target, link, error);
    return !error && std::filesystem::path::preferred_separator == '/';
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The process works in another folder for a while.
class ScopedCurrentFolder {
 public:
  explicit ScopedCurrentFolder(const std::filesystem::path& folder) {
    std::filesystem::current_path(folder);
  }
  ~ScopedCurrentFolder() { std::filesystem::current_path(before_); }

 private:
  const std::filesystem::path before_ = std::filesystem::current_path();
};

class ProgramIncludeTest : public WithSource {
 protected:
  // The number that a program's kernel writes: the value of A from its headers.
  cl_int ValueOfA(const std::string& directives, const std::string& options) const {
    const Own<cl_program> program =
        Source((directives + "\nkernel void k(global int* p) { *p = A; }\n").c_str());
    const cl_device_id one = device();
    const cl_int status = clBuildProgram(program, 1, &one, options.c_str(), nullptr, nullptr);
    SCOPED_TRACE(directives + " | " + options);
    EXPECT_CL("clBuildProgram.include", CL_SUCCESS, status);
    return status == CL_SUCCESS ? RunK(program) : -1;
  }
};

// A header that a source names by its absolute path is the application's own file, also where it is
// asked for, comes from a macro, or includes another. The source stays as the application wrote it.
TEST_F(ProgramIncludeTest, AbsoluteIncludesAreTheApplications) {
  const Folder folder;
  ASSERT_FALSE(folder.path().empty());
  folder.Put("a.h", "#include \"sub/b.h\"\n#include \"" + folder.path() + "/c.h\"\n");
  folder.Put("sub/b.h", "#define B 40\n");
  folder.Put("c.h", "#define C 1\n");
  folder.Put("d.h", "#define D 1\n");
  const std::string text = "#include \"" + folder.path() + "/a.h\"\n#define FILE_D \"" +
                           folder.path() + "/d.h\"\n#include FILE_D\n#if __has_include(\"" +
                           folder.path() + "/c.h\") && !__has_include(\"" + folder.path() +
                           "/no.h\")\nkernel void k(global int* p) { *p = B + C + D; }\n#endif\n";
  const Own<cl_program> built = Source(text.c_str());
  const cl_device_id one = device();
  ASSERT_CL("clBuildProgram.absolute_include", CL_SUCCESS,
            clBuildProgram(built, 1, &one, "", nullptr, nullptr));
  EXPECT_EQ(RunK(built), 42);
  std::string source(text.size() + 1, '\0');
  EXPECT_CL("clGetProgramInfo.absolute_include", CL_SUCCESS,
            clGetProgramInfo(built, CL_PROGRAM_SOURCE, source.size(), source.data(), nullptr));
  EXPECT_STREQ(source.c_str(), text.c_str());
  const Own<cl_program> missing =
      Source(("#include \"" + folder.path() + "/no.h\"\nkernel void k() {}\n").c_str());
  EXPECT_CL("clBuildProgram.missing_absolute_include", CL_BUILD_PROGRAM_FAILURE,
            clBuildProgram(missing, 1, &one, "", nullptr, nullptr));
}

// Headers in the application's own folders are found through -I, in builds and in compiles, also
// through each other.
TEST_F(ProgramIncludeTest, IncludePathsAreTheApplications) {
  if (DeviceValue<cl_bool>(device(), CL_DEVICE_LINKER_AVAILABLE) != CL_TRUE)
    GTEST_SKIP() << "the device has no linker";
  const Folder folder;
  ASSERT_FALSE(folder.path().empty());
  folder.Put("a.h", "#include \"sub/b.h\"\n#define A (B + 2)\n");
  folder.Put("sub/b.h", "#define B 40\n");
  const char* text = "#include \"a.h\"\nkernel void k(global int* p) { *p = A; }";
  const std::string options = "-I " + folder.path();
  const Own<cl_program> built = Source(text);
  const cl_device_id one = device();
  ASSERT_CL("clBuildProgram.include_path", CL_SUCCESS,
            clBuildProgram(built, 1, &one, options.c_str(), nullptr, nullptr));
  EXPECT_EQ(RunK(built), 42);
  const Own<cl_program> compiled = Source(text);
  ASSERT_CL("clCompileProgram.include_path", CL_SUCCESS, Compile(compiled, options.c_str()));
  const cl_program only[] = {compiled};
  const Own<cl_program> linked =
      MAKE("clLinkProgram.include_path",
           clLinkProgram(context(), 1, &one, "", 1, only, nullptr, nullptr, error));
  EXPECT_EQ(RunK(linked), 42);
  // Without the folder the header is missing, and the build says which.
  const Own<cl_program> missing = Source("#include \"no_such_header.h\"\n");
  EXPECT_CL("clBuildProgram.missing_header", CL_BUILD_PROGRAM_FAILURE,
            clBuildProgram(missing, 1, &one, options.c_str(), nullptr, nullptr));
  std::string log(65536, '\0');
  EXPECT_EQ(
      clGetProgramBuildInfo(missing, one, CL_PROGRAM_BUILD_LOG, log.size(), log.data(), nullptr),
      CL_SUCCESS);
  EXPECT_NE(log.find("no_such_header.h"), std::string::npos) << log.c_str();
}

// A folder's name may have blanks in it, where it is the current one or lies below that; headers
// there find others beside and above them.
TEST_F(ProgramIncludeTest, FoldersMayHaveBlanks) {
  const Folder folder;
  ASSERT_FALSE(folder.path().empty());
  folder.Put("of mine/a.h", "#include \"../above.h\"\n#include \"beside.h\"\n#define A (B + C)\n");
  folder.Put("of mine/beside.h", "#define B 40\n");
  folder.Put("above.h", "#define C 2\n");
  {
    const ScopedCurrentFolder here(folder.path() + "/of mine");
    for (const char* options : {"", "-w", "-I.", "-I ."})
      EXPECT_EQ(ValueOfA("#include \"a.h\"", options), 42) << options;
    EXPECT_EQ(ValueOfA("#include <a.h>", "-I ."), 42);
  }
  const ScopedCurrentFolder here(folder.path());
  EXPECT_EQ(ValueOfA("#include \"of mine/a.h\"", ""), 42);
}

// A path may be written in each way that Windows has for it.
TEST_F(ProgramIncludeTest, PathsOfWindows) {
  if (std::filesystem::path::preferred_separator != '\\') GTEST_SKIP() << "this is not Windows";
  const Folder folder;
  ASSERT_FALSE(folder.path().empty());
  folder.Put("low/a.h", "#include \"..\\above.h\"\n#include \"lower\\b.h\"\n#define A (B + C)\n");
  folder.Put("low/lower/b.h", "#define B 40\n");
  folder.Put("above.h", "#define C 2\n");
  std::string path = folder.path() + "/low";
  const std::string slashes = path;
  std::replace(path.begin(), path.end(), '/', '\\');
  const ScopedCurrentFolder here(folder.path());
  EXPECT_EQ(ValueOfA("#include \"low\\a.h\"", ""), 42);
  EXPECT_EQ(ValueOfA("#include \"" + path + "\\a.h\"", ""), 42);
  // Of a drive's current folder, from the current drive's root, past Windows' rules for names.
  for (const std::string& option :
       {path, slashes, "\"" + path + '"', std::string(".\\low"), path.substr(0, 2) + "low",
        path.substr(2), slashes.substr(2), "\\\\?\\" + path}) {
    EXPECT_EQ(ValueOfA("#include \"a.h\"", "-I " + option), 42) << option;
  }
  // As hashcat puts them together.
  const std::string computed =
      "#define M2S_(x) #x\n#define M2S(x) M2S_(x)\n#include M2S(INCLUDE_PATH/a.h)\n";
  EXPECT_EQ(ValueOfA(computed, "-D INCLUDE_PATH=" + slashes), 42);
}

// The current folder may be the root, of the drive if there are several.
TEST_F(ProgramIncludeTest, FromTheRoot) {
  const Folder folder;
  ASSERT_FALSE(folder.path().empty());
  folder.Put("a.h", "#define A 42\n");
  const std::filesystem::path path = folder.path();
  const ScopedCurrentFolder here(path.root_path());
  const std::string below = path.relative_path().generic_string();
  EXPECT_EQ(ValueOfA("#include \"" + below + "/a.h\"", ""), 42);
  EXPECT_EQ(ValueOfA("#include \"a.h\"", "-I " + below), 42);
}

// A path that a program's own macros put together, as hashcat does: INCLUDE_PATH/a.h.
constexpr char kComputed[] =
    "#define M2S_(x) #x\n#define M2S(x) M2S_(x)\n#include M2S(INCLUDE_PATH/a.h)\n";

// After a symbolic link, ".." is the folder above the link's target, as in every path of the system
// (path_resolution(7)): in build options, absolute paths, macros, and names of headers. Another
// version of each header lies at the place to which the text alone would lead.
TEST_F(ProgramIncludeTest, DotsAfterSymbolicLinks) {
  const Folder folder;
  ASSERT_FALSE(folder.path().empty());
  folder.Put("v2/kernels/a.h", "#include \"../common/b.h\"\n#define A B\n");
  folder.Put("v2/common/b.h", "#define B 42\n");
  folder.Put("v2/common/a.h", "#define A 42\n");
  folder.Put("app/common/b.h", "#define B 1\n");
  folder.Put("app/common/a.h", "#define A 2\n");
  folder.Put("lone/x.h", "");
  const std::string target = folder.path() + "/v2/kernels";
  if (!folder.Link("app/kernels", target) || !folder.Link("lone/kernels", "../v2/kernels"))
    GTEST_SKIP() << "this system has no symbolic links that tests can make";
  const std::string app = folder.path() + "/app";
  const std::string lone = folder.path() + "/lone";
  EXPECT_EQ(ValueOfA("#include \"a.h\"", "-I " + app + "/kernels"), 42);
  EXPECT_EQ(ValueOfA("#include <a.h>", "-I " + app + "/kernels/../common"), 42);
  EXPECT_EQ(ValueOfA("#include \"kernels/a.h\"", "-I " + app), 42);
  EXPECT_EQ(ValueOfA("#include <kernels/../common/a.h>", "-I " + app), 42);
  EXPECT_EQ(ValueOfA("#include \"" + app + "/kernels/a.h\"", ""), 42);
  EXPECT_EQ(ValueOfA("#include \"" + app + "/kernels/../common/a.h\"", ""), 42);
  EXPECT_EQ(ValueOfA(kComputed, "-D INCLUDE_PATH=" + app + "/kernels/../common"), 42);
  EXPECT_EQ(ValueOfA("#include \"a.h\"", "-I " + lone + "/kernels"), 42);
  EXPECT_EQ(ValueOfA(kComputed, "-D INCLUDE_PATH=" + lone + "/kernels"), 42);
  const ScopedCurrentFolder here(lone);
  EXPECT_EQ(ValueOfA("#include \"a.h\"", "-I kernels/../common"), 42);
  EXPECT_EQ(ValueOfA("#include \"kernels/a.h\"", ""), 42);
}

// A header that is a symbolic link finds its neighbours beside the link, and is one file with its
// target for #pragma once. Links of links count; those that lead in a circle are no headers.
TEST_F(ProgramIncludeTest, HeadersThatAreSymbolicLinks) {
  const Folder folder;
  ASSERT_FALSE(folder.path().empty());
  folder.Put("store/a.h", "#pragma once\n#include \"b.h\"\nconstant int a = B;\n#define A a\n");
  folder.Put("store/b.h", "#define B 1\n");
  folder.Put("app/b.h", "#define B 42\n");
  if (!folder.Link("app/a.h", "again.h") || !folder.Link("app/again.h", "../store/a.h") ||
      !folder.Link("app/circle.h", "round.h") || !folder.Link("app/round.h", "circle.h"))
    GTEST_SKIP() << "this system has no symbolic links that tests can make";
  const std::string options = "-I " + folder.path() + "/app -I " + folder.path();
  EXPECT_EQ(ValueOfA("#include \"a.h\"\n#include <store/a.h>", options), 42);
  EXPECT_EQ(ValueOfA("#include <a.h>\n#include \"again.h\"", options), 42);
  const Own<cl_program> circle = Source("#include \"circle.h\"\nkernel void k() {}\n");
  const cl_device_id one = device();
  EXPECT_CL("clBuildProgram.circular_include", CL_BUILD_PROGRAM_FAILURE,
            clBuildProgram(circle, 1, &one, options.c_str(), nullptr, nullptr));
}

// A path may lead into a folder and out of it again, if there is such a folder.
TEST_F(ProgramIncludeTest, DotsAfterFolders) {
  const Folder folder;
  ASSERT_FALSE(folder.path().empty());
  folder.Put("of/none/of/these.h", "");
  folder.Put("a.h", "#define A 42\n");
  const std::string options = "-I " + folder.path();
  EXPECT_EQ(ValueOfA("#include \"of/none/../../a.h\"", options), 42);
  EXPECT_EQ(ValueOfA("#include <a.h>", options + "/of/.."), 42);
  EXPECT_EQ(ValueOfA("#include \"" + folder.path() + "/of/../a.h\"", ""), 42);
  EXPECT_EQ(ValueOfA(kComputed, "-D INCLUDE_PATH=" + folder.path() + "/of/none/../.."), 42);
  if (std::filesystem::path::preferred_separator != '/') return;  // There only the text counts.
  const std::string asks = "#if __has_include(<missing/../a.h>) || __has_include(<a.h/../a.h>)\n";
  EXPECT_EQ(ValueOfA(asks + "#define A 1\n#else\n#define A 42\n#endif", options), 42);
}

// clang's OpenCL C has #include_next and __has_include_next: the file of the name in the folders
// after the one that the including file is from.
TEST_F(ProgramIncludeTest, NextFileOfTheName) {
  const Folder folder;
  ASSERT_FALSE(folder.path().empty());
  folder.Put("one/a.h", "#include_next <a.h>\n");
  folder.Put("one/b.h",
             "#if __has_include_next(<b.h>)\n#include_next <b.h>\n#endif\n#define A B\n");
  folder.Put("one/c.h", "#define NEXT <c.h>\n#include_next NEXT\n#define A (C + 1)\n");
  folder.Put("two/a.h", "#include_next \"a.h\"\n#define A (B + 2)\n");
  folder.Put("two/b.h", "#define B 42\n");
  folder.Put("two/c.h", "#define C 41\n");
  folder.Put("three/a.h", "#define B 40\n");
  const std::string options =
      "-I " + folder.path() + "/one -I " + folder.path() + "/two -I " + folder.path() + "/three";
  for (const char* directive : {"#include <a.h>", "#include \"a.h\"", "#include <b.h>",
                                "#include \"b.h\"", "#include <c.h>"}) {
    EXPECT_EQ(ValueOfA(directive, options), 42);
  }
}

// #import, and what is asked for by a macro, are found as what #include names.
TEST_F(ProgramIncludeTest, OtherWaysToNameAHeader) {
  const Folder folder;
  ASSERT_FALSE(folder.path().empty());
  folder.Put("a.h", "constant int a = 42;\n#define A a\n");
  folder.Put("only_asked_for.h", "");
  const std::string options = "-I " + folder.path();
  EXPECT_EQ(ValueOfA("#import \"a.h\"\n#import <a.h>", options), 42);
  for (const std::string name : {"<only_asked_for.h>", "\"only_asked_for.h\""}) {
    EXPECT_EQ(ValueOfA("#define NAME " + name +
                           "\n#if !__has_include(<no_such_header.h>) && __has_include(NAME)\n"
                           "#define A 42\n#else\n#define A 1\n#endif",
                       options),
              42);
  }
}

}  // namespace
}  // namespace sluice::conformance
