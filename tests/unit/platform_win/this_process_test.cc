// SPDX-License-Identifier: Apache-2.0
#include "broker/os/this_process.h"

#include <gtest/gtest.h>
#include <windows.h>

#include <string>

namespace sluice {
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

}  // namespace
}  // namespace sluice
