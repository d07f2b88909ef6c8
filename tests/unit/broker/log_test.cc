// SPDX-License-Identifier: Apache-2.0
#include "broker/base/log.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice::broker {
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

// Writes the lines that the journal's stderr gets, from a process whose stderr it is (or is not).
void LogToTheJournal(bool really) {
  struct stat file = {};
  if (::fstat(STDERR_FILENO, &file) != 0) std::_Exit(1);
  const std::string own = absl::StrCat(file.st_dev, ":", file.st_ino);
  ::setenv("JOURNAL_STREAM", (really ? own : own + "0").c_str(), 1);
  SetLogLevel(LogLevel::kTrace);
  Log(LogLevel::kError, "broker", "an error");
  Log(LogLevel::kWarning, "broker", "a\nwarning", {{"session", "<0>"}});
  Log(LogLevel::kInfo, "broker", "news");
  Log(LogLevel::kDebug, "broker", "details");
  LogText(LogLevel::kError, "two\nlines");
  std::_Exit(0);
}

// The journal is told each line's priority; no line has a second time, or one of a peer's making.
TEST(LogTest, TheJournalGetsPriorities) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // A process that has not logged before.
  EXPECT_EXIT(LogToTheJournal(true), testing::ExitedWithCode(0),
              "<3>error broker msg=\"an error\"\n"
              "<4>warning broker msg=\"a..warning\" session=\"<0>\"\n"
              "<6>info broker msg=news\n"
              "<7>debug broker msg=details\n"
              "<3>two\n<3>lines\n");
}

// A variable that was left over from another stderr changes nothing.
TEST(LogTest, AnotherStderrIsNotTheJournal) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(LogToTheJournal(false), testing::ExitedWithCode(0),
              "[0-9]Z error broker msg=\"an error\"\n(.*\n)*two\nlines\n");
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

// Bytes that are no UTF-8 do not get through, whatever a terminal would take them for; nor do
// characters that end lines or turn the text around. People's own text does.
TEST(LogTest, OnlyTextIsShown) {
  for (const std::string text :
       {"\xc3\xa4 \xe2\x82\xac", "\xe6\x97\xa5\xe6\x9c\xac", "\xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf",
        "\xe2\x80\xa7 \xe2\x80\xaf \xed\x9f\xbf \xee\x80\x80"}) {
    EXPECT_EQ(EscapeLogValue(text), "\"" + text + "\"");
  }
  const std::pair<const char*, const char*> rows[] = {
      {"\x9b 31m", "\\x9b 31m"},                     // A C1 control of 8-bit terminals.
      {"\xc2\x80\xc2\x9f", "\\xc2\\x80\\xc2\\x9f"},  // U+0080, U+009F.
      {"\xc0\x8a", "\\xc0\\x8a"},                    // "\n", in more bytes than it needs.
      {"\xe0\x80\x8a", "\\xe0\\x80\\x8a"},
      {"\xf0\x80\x80\x8a", "\\xf0\\x80\\x80\\x8a"},
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},           // A surrogate.
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},  // Beyond U+10FFFF.
      {"\xff\xfe", "\\xff\\xfe"},
      {"a\xe2\x82", "a\\xe2\\x82"},  // Cut off.
      {"\xe2\x82\"", "\\xe2\\x82\\\""},
      {"\xe2\x80\xa8\xe2\x80\xa9", "\\xe2\\x80\\xa8\\xe2\\x80\\xa9"},  // Separators.
      {"\xe2\x80\xaa", "\\xe2\\x80\\xaa"},                             // U+202A to U+202E.
      {"\xe2\x80\xae", "\\xe2\\x80\\xae"},
      {"\xe2\x81\xa6", "\\xe2\\x81\\xa6"},  // U+2066 to U+2069.
      {"\xe2\x81\xa9", "\\xe2\\x81\\xa9"}};
  for (const auto& [text, shown] : rows) {
    EXPECT_EQ(EscapeLogValue(text), "\"" + std::string(shown) + "\"");
  }
}

// Lines below the level are not written.
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
}  // namespace sluice::broker
