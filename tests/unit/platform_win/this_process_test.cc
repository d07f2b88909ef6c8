// SPDX-License-Identifier: Apache-2.0
#include "broker/os/this_process.h"

#include <gtest/gtest.h>
#include <windows.h>

#include <string>
#include <utility>

namespace sluice::os {
namespace {

constexpr wchar_t kWideName[] = L"SLUICE_TEST_VARIABLE";
constexpr char kName[] = "SLUICE_TEST_VARIABLE";

// A variable is UTF-8 whatever the process's code page, of any length; an empty one is set.
TEST(EnvironmentTest, VariablesAreUtf8) {
  ::SetEnvironmentVariableW(kWideName, nullptr);
  EXPECT_FALSE(EnvironmentVariable(kName).has_value());
  ::SetEnvironmentVariableW(kWideName, L"C:\\Schl\u00fcssel\\\u9375.pem");
  EXPECT_EQ(EnvironmentVariable(kName), "C:\\Schl\u00fcssel\\\u9375.pem");
  ::SetEnvironmentVariableW(kWideName, L"");
  EXPECT_EQ(EnvironmentVariable(kName), "");
  for (const size_t length : {255, 256, 257, 30000}) {
    ::SetEnvironmentVariableW(kWideName, std::wstring(length, L'\u9375').c_str());
    const std::string value = EnvironmentVariable(kName).value_or("");
    EXPECT_EQ(value.size(), 3 * length);
    EXPECT_TRUE(value.ends_with("\u9375"));
  }
  ::SetEnvironmentVariableW(kWideName, nullptr);
}

// A path of Windows has one portable spelling, with what is current when it does not say it all.
TEST(PortablePathTest, KnowsEverySpelling) {
  ASSERT_TRUE(::SetCurrentDirectoryW(L"C:\\windows"));
  const std::pair<const char*, const char*> cases[] = {
      {"a\\b.h", "a/b.h"},
      {"..\\b.h", "../b.h"},
      {"C:\\a\\b.h", "/c/a/b.h"},
      {"c:/a/b.h", "/c/a/b.h"},
      {"C:\\", "/c/"},
      {"C:b.h", "/c/windows/b.h"},
      {"\\a\\b.h", "/c/a/b.h"},
      {"/a/b.h", "/c/a/b.h"},
      {"\\\\?\\C:\\a\\b.h", "/c/a/b.h"},
      {"\\\\server\\share\\b.h", "/unc/server/share/b.h"},
      {"//server/share/b.h", "/unc/server/share/b.h"},
      {"\\\\?\\UNC\\server\\share\\b.h", "/unc/server/share/b.h"},
      {"1:b", "1:b"},
      {"", ""}};
  for (const auto& [path, portable] : cases) EXPECT_EQ(PortablePath(path), portable) << path;
  EXPECT_EQ(CurrentDirectory(), "/c/windows");
  EXPECT_TRUE(IsFileOfThisHost("/c/windows/system32/kernel32.dll"));
}

}  // namespace
}  // namespace sluice::os
