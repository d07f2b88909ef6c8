// SPDX-License-Identifier: Apache-2.0
#include "broker/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <charconv>
#include <cstdio>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "broker/base/shown_text.h"
#include "broker/os/service.h"

namespace sluice {
namespace {

spdlog::logger& Logger() {
  // Never destroyed: threads may log while the process ends.
  static spdlog::logger* logger = [] {
    auto* made = new spdlog::logger("sluice", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern(os::StderrIsJournal() ? "%v" : "%Y-%m-%dT%H:%M:%S.%eZ %v",
                      spdlog::pattern_time_type::utc);
    made->set_level(spdlog::level::info);
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *logger;
}

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return spdlog::level::trace;
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

os::ServiceEvent ToServiceEvent(LogLevel level) {
  if (level == LogLevel::kError) return os::ServiceEvent::kError;
  return level == LogLevel::kWarning ? os::ServiceEvent::kWarning : os::ServiceEvent::kInfo;
}

// The prefix that the journal wants before a line: a priority of syslog(3).
std::string_view PriorityOf(LogLevel level) {
  static const bool journal = os::StderrIsJournal();
  if (!journal) return "";
  switch (level) {
    case LogLevel::kTrace:
    case LogLevel::kDebug:
      return "<7>";
    case LogLevel::kInfo:
      return "<6>";
    case LogLevel::kWarning:
      return "<4>";
    case LogLevel::kError:
      return "<3>";
  }
  return "<6>";
}

constexpr LogLevel kAllLevels[] = {LogLevel::kTrace, LogLevel::kDebug, LogLevel::kInfo,
                                   LogLevel::kWarning, LogLevel::kError};

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.' || c == '/' || c == ':' || c == ',' || c == '@' || c == '+';
}

}  // namespace

std::string_view LogLevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return "trace";
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "info";
}

std::optional<LogLevel> ParseLogLevel(std::string_view name) {
  for (const LogLevel level : kAllLevels) {
    if (name == LogLevelName(level)) return level;
  }
  return std::nullopt;
}

void SetLogLevel(LogLevel level) { Logger().set_level(ToSpdlog(level)); }

LogLevel CurrentLogLevel() {
  for (const LogLevel level : kAllLevels) {
    if (Logger().should_log(ToSpdlog(level))) return level;
  }
  return LogLevel::kError;
}

std::string EscapeLogValue(std::string_view value) {
  bool plain = !value.empty();
  for (const char c : value) plain = plain && IsPlain(c);
  if (plain) return std::string(value);
  return absl::StrCat("\"", ShownText(value, /*escaped=*/"\"\\"), "\"");
}

void Log(LogLevel level, std::string_view component, std::string_view message,
         std::initializer_list<LogField> fields) {
  spdlog::logger& logger = Logger();
  if (!logger.should_log(ToSpdlog(level))) return;
  std::string line(component);
  line += " msg=" + EscapeLogValue(message);
  for (const LogField& field : fields) {
    line += " " + field.key + "=" + EscapeLogValue(field.value);
  }
  const std::string shown =
      std::string(PriorityOf(level)) + std::string(LogLevelName(level)) + " " + line;
  logger.log(ToSpdlog(level), spdlog::string_view_t(shown.data(), shown.size()));
  if (level >= LogLevel::kInfo) os::LogServiceEvent(ToServiceEvent(level), line);
}

void LogText(LogLevel level, std::string_view text) {
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(std::string(text), '\n')))
    std::fputs((std::string(PriorityOf(level)) + line + "\n").c_str(), stderr);
}

std::string HexId(uint64_t id) { return absl::StrFormat("%016x", id); }

std::optional<uint64_t> ParseHexId(std::string_view text) {
  uint64_t id = 0;
  if (text.empty() || text.size() > 16) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return id;
}

}  // namespace sluice
