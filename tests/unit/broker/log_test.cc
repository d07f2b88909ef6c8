// SPDX-License-Identifier: Apache-2.0
#include "broker/base/log.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

// A line has time, level, component, message and fields, in this order.
TEST(LogTest, LineFormat) {
  testing::internal::CaptureStderr();
  Log(LogLevel::kWarning, "broker", "two words", {{"session", HexId(0xab)}, {"count", 3}});
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_EQ(line.substr(24), " warning broker msg=\"two words\" session=00000000000000ab count=3\n")
      << line;
  EXPECT_EQ(line[10], 'T');
  EXPECT_EQ(line[23], 'Z');
}

// A peer's string can forge neither a line nor a field, nor reach the terminal.
TEST(LogTest, ValuesAreEscaped) {
  EXPECT_EQ(EscapeLogValue("plain-1.2/x:y"), "plain-1.2/x:y");
  EXPECT_EQ(EscapeLogValue(""), "\"\"");
  EXPECT_EQ(EscapeLogValue("a\nb"), "\"a\\nb\"");
  EXPECT_EQ(EscapeLogValue("x uid=0"), "\"x uid=0\"");
  EXPECT_EQ(EscapeLogValue("uid=0"), "\"uid=0\"");
  EXPECT_EQ(EscapeLogValue("q\"\\"), "\"q\\\"\\\\\"");
  EXPECT_EQ(EscapeLogValue("\x1b[31m"), "\"\\x1b[31m\"");
  EXPECT_EQ(EscapeLogValue("\xc2\x9b 31m \xc3\xa4"), "\"\\xc2\\x9b 31m \xc3\xa4\"");
}

// What is below the level is not written.
TEST(LogTest, LevelFilters) {
  SetLogLevel(LogLevel::kError);
  EXPECT_EQ(CurrentLogLevel(), LogLevel::kError);
  testing::internal::CaptureStderr();
  Log(LogLevel::kWarning, "broker", "quiet");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  SetLogLevel(LogLevel::kInfo);
}

// Levels and ids are read back as they are written, and nothing else is.
TEST(LogTest, NamesRoundTrip) {
  for (const LogLevel level : {LogLevel::kTrace, LogLevel::kDebug, LogLevel::kInfo,
                               LogLevel::kWarning, LogLevel::kError}) {
    EXPECT_EQ(ParseLogLevel(LogLevelName(level)), level);
  }
  EXPECT_FALSE(ParseLogLevel("warn").has_value());
  EXPECT_EQ(ParseHexId(HexId(0x123456789abcdef0)), 0x123456789abcdef0);
  EXPECT_EQ(ParseHexId("ff"), 255u);
  for (const char* bad : {"", "xyz", "12345678901234567", "0x1", " 1", "-1"}) {
    EXPECT_FALSE(ParseHexId(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace sluice
