// SPDX-License-Identifier: Apache-2.0
//
// One line per event, on stderr: time level component key=value... session=ID where there is one.
// In systemd's journal, which keeps the time itself, the line's priority stands in the time's
// place. Used by the broker, the gateway and the worker (library sluice_log); never by the ICD,
// which must not write into a stranger's stderr.
//
// Thread-safe. Values are escaped, so that a peer's string cannot forge a line or a field:
//
//   Log(LogLevel::kInfo, "broker", "session opened", {{"session", HexId(id)}, {"uid", uid}});
//   2024-01-31T10:00:00.123Z info broker msg="session opened" session=00ab... uid=1000
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace sluice {

enum class LogLevel { kTrace, kDebug, kInfo, kWarning, kError };

// A key and its value, which may be any string or integer.
struct LogField {
  LogField(std::string_view field_key, std::string_view field_value)
      : key(field_key), value(field_value) {}
  LogField(std::string_view field_key, const char* field_value)
      : LogField(field_key, std::string_view(field_value)) {}
  LogField(std::string_view field_key, const std::string& field_value)
      : LogField(field_key, std::string_view(field_value)) {}
  template <typename T>
  requires std::is_integral_v<T> LogField(std::string_view field_key, T field_value)
      : key(field_key), value(std::to_string(field_value)) {}

  std::string key;
  std::string value;
};

// Lines below `level` are dropped. Default: info. "trace", "debug", "info", "warning", "error".
void SetLogLevel(LogLevel level);
LogLevel CurrentLogLevel();
std::optional<LogLevel> ParseLogLevel(std::string_view name);
std::string_view LogLevelName(LogLevel level);

void Log(LogLevel level, std::string_view component, std::string_view message,
         std::initializer_list<LogField> fields = {});

// Text for people, of one line or several: as it is, but in the journal each line has its priority.
void LogText(LogLevel level, std::string_view text);

// 16 lower-case hexadecimal digits: how a session id is written everywhere.
std::string HexId(uint64_t id);
std::optional<uint64_t> ParseHexId(std::string_view text);

// The form of a value inside a log line: as it is if it is plain, else quoted and escaped.
std::string EscapeLogValue(std::string_view value);

}  // namespace sluice
