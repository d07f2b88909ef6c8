// SPDX-License-Identifier: Apache-2.0
#include "broker/config/config_reader.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "broker/config/config.h"

namespace sluice::broker {
namespace {

std::string TypeName(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a number with a fraction";
    case toml::node_type::boolean:
      return "true or false";
    default:
      return "a date or time";
  }
}

bool IsContinuation(char byte) { return (byte & 0xc0) == 0x80; }  // Of a character in UTF-8.

// Where `position`, which counts characters, is in `text`.
size_t OffsetOf(const toml::source_position& position, const std::string& text) {
  size_t at = 0;
  for (uint32_t line = 1; line < position.line && at < text.size(); ++at) {
    if (text[at] == '\n') ++line;
  }
  for (uint32_t column = 1; column < position.column && at < text.size(); ++column) {
    ++at;
    while (at < text.size() && IsContinuation(text[at])) ++at;
  }
  return at;
}

size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

}  // namespace

std::string NearestName(const std::string& written, const std::vector<std::string>& names) {
  std::string nearest;
  size_t nearest_distance = written.size() / 3 + 1;  // Farther away it is no slip of the pen.
  for (const std::string& name : names) {
    const bool begun = written.size() >= 3 && name.starts_with(written);
    const size_t distance = begun ? 1 : EditDistance(written, name);
    if (distance < nearest_distance) {
      nearest = name;
      nearest_distance = distance;
    }
  }
  return nearest;
}

toml::parse_result ConfigErrors::Parse(const std::string& text) {
  std::string quoted = text;
  toml::parse_result parsed = toml::parse(text, file_);
  while (parsed.failed()) {
    if (!QuoteBareValue(parsed.error().source().begin, &quoted)) return toml::parse(text, file_);
    parsed = toml::parse(quoted, file_);
  }
  return parsed;
}

const std::string* ConfigErrors::BareAt(const toml::node& node) const {
  const auto found = bare_.find({node.source().begin.line, node.source().begin.column});
  return found != bare_.end() ? &found->second : nullptr;
}

// The parser's position is at the value's begin, inside it, or just behind it.
bool ConfigErrors::QuoteBareValue(const toml::source_position& inside, std::string* text) {
  constexpr absl::string_view kEnds = " \t\r\n,=[]{}#\"'";
  const auto ends = [&](size_t at) { return kEnds.find((*text)[at]) != kEnds.npos; };
  size_t end = OffsetOf(inside, *text);
  size_t begin = end;
  while (end < text->size() && !ends(end)) ++end;
  while (begin > 0 && !ends(begin - 1)) --begin;
  size_t before = begin;
  while (before > 0 && ((*text)[before - 1] == ' ' || (*text)[before - 1] == '\t')) --before;
  const bool is_value =
      begin < end && before > 0 &&
      absl::string_view("=,[").find((*text)[before - 1]) != absl::string_view::npos;
  if (!is_value) return false;
  const size_t line_begin = text->rfind('\n', begin) + 1;  // 0 if there is none.
  const auto line = absl::string_view(*text).substr(line_begin, begin - line_begin);
  const auto column =
      1 + std::count_if(line.begin(), line.end(), [](char byte) { return !IsContinuation(byte); });
  const std::string value = text->substr(begin, end - begin);
  bare_[{inside.line, static_cast<uint32_t>(column)}] = value;
  text->replace(begin, end - begin, absl::StrCat("'", value, "'"));
  return true;
}

void ConfigErrors::Add(const toml::source_region& where, const std::string& message) {
  found_.push_back({where.begin.line, where.begin.column, message});
}

void ConfigErrors::AddUnknown(const toml::source_region& where, const std::string& key,
                              const std::string& section, const std::vector<std::string>& allowed) {
  unknown_.push_back({where, key, section, allowed});
}

std::string ConfigErrors::Place(const toml::source_region& where) const {
  return absl::StrCat(file_, ":", where.begin.line, ":", where.begin.column);
}

std::string ConfigErrors::Describe(const Unknown& unknown) const {
  const auto known = sections_of_.find(unknown.key);
  if (known != sections_of_.end()) {
    const std::string home = known->second.contains(kTopLevel)
                                 ? absl::StrCat("at the top of the file, as [", unknown.key, "]")
                                 : absl::StrCat("in ", absl::StrJoin(known->second, " or "));
    return unknown.section == kTopLevel
               ? absl::StrCat("key \"", unknown.key, "\" is outside its table: it belongs ", home)
               : absl::StrCat("key \"", unknown.key, "\" is in ", unknown.section, ", but belongs ",
                              home);
  }
  const std::string nearest = NearestName(unknown.key, unknown.allowed);
  return absl::StrCat("unknown key \"", unknown.key, "\" in ", unknown.section,
                      nearest.empty() ? "" : absl::StrCat(" (did you mean \"", nearest, "\"?)"),
                      "; allowed are ", absl::StrJoin(unknown.allowed, ", "));
}

std::string ConfigErrors::Text() const {
  std::vector<Error> all = found_;
  for (const Unknown& one : unknown_) {
    all.push_back({one.where.begin.line, one.where.begin.column, Describe(one)});
  }
  std::stable_sort(all.begin(), all.end(), [](const Error& a, const Error& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
  return absl::StrJoin(all, "\n", [this](std::string* out, const Error& error) {
    absl::StrAppend(out, file_, ":", error.line, ":", error.column, ": ", error.text);
  });
}

const toml::node* SectionReader::Find(const std::string& key) {
  known_.push_back(key);
  errors_->NoteKey(key, name_);
  return table_ != nullptr ? table_->get(key) : nullptr;
}

void SectionReader::WrongType(const toml::node& node, const std::string& key,
                              const std::string& wanted) {
  const std::string* bare = errors_->BareAt(node);
  errors_->Add(node.source(),
               absl::StrCat("key \"", key, "\" in ", name_, " is ",
                            bare != nullptr ? *bare : TypeName(node), ", allowed is ", wanted));
}

std::optional<std::string> SectionReader::Text(const toml::node& node) const {
  if (errors_->BareAt(node) != nullptr) return std::nullopt;
  return node.value_exact<std::string>();
}

void SectionReader::NoText(const toml::node& node, const std::string& key,
                           const std::string& wanted) {
  const std::string* bare = errors_->BareAt(node);
  if (bare == nullptr) return WrongType(node, key, wanted);
  errors_->Add(node.source(), absl::StrCat("key \"", key, "\" in ", name_, " is ", *bare,
                                           " without quotes, allowed is ", wanted));
}

// Refuses control characters, which no value needs: they come from a backslash and a letter.
bool SectionReader::RefuseControl(const toml::node& node, const std::string& key,
                                  const std::string& value) {
  const bool found = std::any_of(value.begin(), value.end(), [](unsigned char byte) {
    return (byte != 0 && byte < ' ') || byte == 0x7f;
  });
  if (!found) return false;
  errors_->Add(node.source(), absl::StrCat("key \"", key, "\" in ", name_,
                                           " has a control character", kBackslashAdvice));
  return true;
}

void SectionReader::String(const std::string& key, std::string* out) {
  const toml::node* node = Find(key);
  if (node == nullptr) return;
  const auto value = Text(*node);
  if (!value.has_value()) return NoText(*node, key, "a string");
  if (value->find('\0') != std::string::npos) return WrongType(*node, key, "a string without NUL");
  if (RefuseControl(*node, key, *value)) return;
  *out = *value;
}

void SectionReader::Boolean(const std::string& key, bool* out, const std::string& fixed) {
  const toml::node* node = Find(key);
  if (node == nullptr) return;
  const auto value = node->value_exact<bool>();
  if (!value.has_value()) return WrongType(*node, key, "true or false");
  if (*value != *out && !fixed.empty()) {
    errors_->Add(node->source(), absl::StrCat("key \"", key, "\" in ", name_, " is ",
                                              *value ? "true" : "false", ", allowed is ", fixed));
    return;
  }
  *out = *value;
}

void SectionReader::Integer(const std::string& key, int64_t minimum, int64_t maximum,
                            int64_t* out) {
  const toml::node* node = Find(key);
  if (node == nullptr) return;
  const std::string wanted = absl::StrCat("an integer from ", minimum, " to ", maximum);
  const auto value = node->value_exact<int64_t>();
  if (!value.has_value()) return WrongType(*node, key, wanted);
  if (*value < minimum || *value > maximum) {
    return errors_->Add(node->source(), absl::StrCat("key \"", key, "\" in ", name_, " is ", *value,
                                                     ", allowed is ", wanted));
  }
  *out = *value;
}

void SectionReader::Count(const std::string& key, uint64_t minimum, uint64_t* out) {
  int64_t value = static_cast<int64_t>(*out);
  Integer(key, static_cast<int64_t>(minimum), 1'000'000'000'000, &value);
  *out = static_cast<uint64_t>(value);
}

void SectionReader::Bytes(const std::string& key, uint64_t* out, uint64_t least) {
  const toml::node* node = Find(key);
  if (node == nullptr) return;
  constexpr char kWanted[] =
      "a number of bytes below 2^64, as an integer or as a string with a unit such as "
      "\"512MiB\" or \"4GiB\"";
  const auto number = node->value_exact<int64_t>();
  const auto text = node->value_exact<std::string>();
  if (!number.has_value() && !text.has_value()) return WrongType(*node, key, kWanted);
  const std::string* bare = errors_->BareAt(*node);
  if (bare != nullptr && ParseByteSize(*bare).has_value()) return NoText(*node, key, kWanted);
  if (bare != nullptr) return WrongType(*node, key, kWanted);
  const auto refuse = [&](const std::string& allowed) {
    const std::string written =
        number.has_value() ? absl::StrCat(*number) : absl::StrCat("\"", *text, "\"");
    errors_->Add(node->source(), absl::StrCat("key \"", key, "\" in ", name_, " is ", written,
                                              ", allowed is ", allowed));
  };
  if (number.has_value() && *number < 0) return refuse("0 or more bytes");
  const std::optional<uint64_t> bytes =
      number.has_value() ? static_cast<uint64_t>(*number) : ParseByteSize(*text);
  if (!bytes.has_value()) return refuse(kWanted);
  if (*bytes != 0 && *bytes < least) {
    return refuse(absl::StrCat("0, which is no limit, or at least ", least >> 20, "MiB"));
  }
  *out = *bytes;
}

void SectionReader::StringOrList(const std::string& key, const Problem& problem,
                                 std::vector<std::string>* out) {
  const toml::node* node = Find(key);
  if (node == nullptr) return;
  out->clear();
  const toml::array* array = node->as_array();
  if (array == nullptr) return ListElement(*node, key, problem, out);
  for (const toml::node& element : *array) ListElement(element, key, problem, out);
}

void SectionReader::ListElement(const toml::node& element, const std::string& key,
                                const Problem& problem, std::vector<std::string>* out) {
  std::optional<std::string> value = Text(element);
  if (const auto number = element.value_exact<int64_t>(); key == "users" && number) {
    value = absl::StrCat(*number);
  }
  if (!value.has_value()) return NoText(element, key, "a string or an array of strings");
  if (RefuseControl(element, key, *value)) return;
  const std::string wrong = problem(*value);
  if (!wrong.empty()) {
    return errors_->Add(element.source(), absl::StrCat("key \"", key, "\" in ", name_, " has \"",
                                                       *value, "\", ", wrong));
  }
  out->push_back(*std::move(value));
}

void SectionReader::StringTable(const std::string& key, const Problem& problem,
                                std::map<std::string, std::string>* out) {
  const toml::node* node = Find(key);
  if (node == nullptr) return;
  const toml::table* table = node->as_table();
  if (table == nullptr) return WrongType(*node, key, "a table of strings");
  out->clear();
  for (const auto& [key_of_table, value] : *table) {
    const std::string name(key_of_table.str());
    const auto text = Text(value);
    const std::string wrong = problem(name);
    if (!wrong.empty()) {
      errors_->Add(key_of_table.source(),
                   absl::StrCat("key \"", key, "\" in ", name_, " has \"", name, "\", ", wrong));
    } else if (!text.has_value() || text->find('\0') != std::string::npos) {
      NoText(value, absl::StrCat(key, ".", name), "a string without NUL");
    } else {
      (*out)[name] = *text;
    }
  }
}

void SectionReader::Parsed(const std::string& key, const std::string& allowed,
                           const std::function<bool(const std::string&)>& parse) {
  const toml::node* node = Find(key);
  if (node == nullptr) return;
  const auto value = Text(*node);
  if (!value.has_value()) return NoText(*node, key, allowed);
  if (value->find('\0') != std::string::npos) return WrongType(*node, key, "a string without NUL");
  if (RefuseControl(*node, key, *value)) return;
  if (!parse(*value)) {
    errors_->Add(node->source(), absl::StrCat("key \"", key, "\" in ", name_, " is \"", *value,
                                              "\", allowed is ", allowed));
  }
}

std::string SectionReader::PlaceOf(const std::string& key) const {
  const toml::node* node = table_ != nullptr ? table_->get(key) : nullptr;
  return node != nullptr ? errors_->Place(node->source()) : "";
}

const toml::table* SectionReader::Table(const std::string& key) {
  const toml::node* node = Find(key);
  if (node == nullptr) return nullptr;
  if (node->as_table() == nullptr) WrongType(*node, key, absl::StrCat("a table, [", key, "]"));
  return node->as_table();
}

std::vector<const toml::table*> SectionReader::TableArray(const std::string& key) {
  std::vector<const toml::table*> tables;
  const toml::node* node = Find(key);
  if (node == nullptr) return tables;
  const toml::array* array = node->as_array();
  if (array == nullptr) {
    WrongType(*node, key, absl::StrCat("an array of tables, each begun with [[", key, "]]"));
    return tables;
  }
  for (const toml::node& element : *array) {
    if (element.as_table() == nullptr) {
      WrongType(element, key, absl::StrCat("a table, begun with [[", key, "]]"));
    } else {
      tables.push_back(element.as_table());
    }
  }
  return tables;
}

void SectionReader::Finish() {
  if (table_ == nullptr) return;
  for (const auto& [key, value] : *table_) {
    const std::string name(key.str());
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    errors_->AddUnknown(key.source(), name, name_, known_);
  }
}

std::optional<uint64_t> ParseByteSize(const std::string& text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  const std::string unit(absl::StripAsciiWhitespace(
      absl::string_view(end, static_cast<size_t>(text.data() + text.size() - end))));
  constexpr std::pair<const char*, unsigned> kUnits[] = {{"", 0},     {"B", 0},    {"KiB", 10},
                                                         {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
  for (const auto& [name, shift] : kUnits) {
    if (unit != name) continue;
    if (number > (std::numeric_limits<uint64_t>::max() >> shift)) return std::nullopt;
    return number << shift;
  }
  return std::nullopt;
}

}  // namespace sluice::broker
