// SPDX-License-Identifier: Apache-2.0
#include "client_icd/program_headers/absolute_includes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace sluice::client {
namespace {

// A text that needs no change is not changed, byte for byte.
TEST(AbsoluteIncludesTest, LeavesTheRestAlone) {
  for (const char* text :
       {"", "\n", "#include \"x.h\"\n#include <y/z.h>\n",
        "kernel void k() { /* #include \"/x\" */ }", "#define F \"/%d of nothing\\n\"\n",
        "#if X / Y\n", "#", "#include", "#include \"/x", "a = b #include \"/x\"\n",
        "#pragma include \"/x\"\n", "#define", "#if __has_include"}) {
    EXPECT_EQ(RewriteAbsoluteIncludes(text), text);
  }
}

// Every directive that names a file by its absolute path names it below our folder.
TEST(AbsoluteIncludesTest, RewritesDirectives) {
  const std::pair<const char*, const char*> cases[] = {
      {"#include \"/a/b.h\"\n", "#include \".sluice-host/a/b.h\"\n"},
      {"  #  include </a/b.h> // why\n", "  #  include <.sluice-host/a/b.h> // why\n"},
      {"#include_next \"/a\"", "#include_next \".sluice-host/a\""},
      {"%:include \"/a\"\n", "%:include \".sluice-host/a\"\n"},
      {"/* c */ #include \"/a\"\n", "/* c */ #include \".sluice-host/a\"\n"},
      {"#embed \"/a\" limit(1)\n", "#embed \".sluice-host/a\" limit(1)\n"},
      {"#if __has_include(\"/a\") && __has_include( </b>)\n",
       "#if __has_include(\".sluice-host/a\") && __has_include( <.sluice-host/b>)\n"},
      {"#elif __has_include_next(\"/a\")\n", "#elif __has_include_next(\".sluice-host/a\")\n"},
      {"x\n#include \"/a\"\ny\n#include \"/b\"\n",
       "x\n#include \".sluice-host/a\"\ny\n#include \".sluice-host/b\"\n"},
  };
  for (const auto& [before, after] : cases) EXPECT_EQ(RewriteAbsoluteIncludes(before), after);
}

// A macro is rewritten if it is the path of a file that there is, and is any other text if not.
TEST(AbsoluteIncludesTest, RewritesMacrosThatAreFiles) {
  std::string path = ::testing::TempDir() + "/absolute_includes.XXXXXX";
  const int file = mkstemp(path.data());
  ASSERT_GE(file, 0);
  close(file);
  EXPECT_EQ(RewriteAbsoluteIncludes("#define F \"" + path + "\"\n"),
            "#define F \".sluice-host" + path + "\"\n");
  unlink(path.c_str());
  EXPECT_EQ(RewriteAbsoluteIncludes("#define F \"" + path + "\"\n"),
            "#define F \"" + path + "\"\n");
}

}  // namespace
}  // namespace sluice::client
