// SPDX-License-Identifier: Apache-2.0
#include "broker/config_reader.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "broker/config.h"

namespace sluice {
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
  size_t nearest_distance = written.size() / 3 + 2;  // Farther away it is no slip of the pen.
  for (const std::string& name : names) {
    const size_t distance = EditDistance(written, name);
    if (distance < nearest_distance) {
      nearest = name;
      nearest_distance = distance;
    }
  }
  return nearest;
}

void ConfigErrors::Add(const toml::source_region& where, const std::string& message) {
  lines.push_back(
      absl::StrCat(file, ":", where.begin.line, ":", where.begin.column, ": ", message));
}

const toml::node* SectionReader::Find(const std::string& key) {
  known_.push_back(key);
  return table_ != nullptr ? table_->get(key) : nullptr;
}

void SectionReader::WrongType(const toml::node& node, const std::string& key,
                              const std::string& wanted) {
  errors_->Add(node.source(), absl::StrCat("key \"", key, "\" in ", name_, " is ", TypeName(node),
                                           ", allowed is ", wanted));
}

void SectionReader::String(const std::string& key, std::string* out) {
  const toml::node* node = Find(key);
  if (node == nullptr) return;
  const auto value = node->value_exact<std::string>();
  if (!value.has_value()) return WrongType(*node, key, "a string");
  if (value->find('\0') != std::string::npos) return WrongType(*node, key, "a string without NUL");
  *out = *value;
}

void SectionReader::Boolean(const std::string& key, bool* out) {
  const toml::node* node = Find(key);
  if (node == nullptr) return;
  const auto value = node->value_exact<bool>();
  if (!value.has_value()) return WrongType(*node, key, "true or false");
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

void SectionReader::Bytes(const std::string& key, uint64_t* out) {
  const toml::node* node = Find(key);
  if (node == nullptr) return;
  constexpr char kWanted[] =
      "a number of bytes, as an integer or as a string with a unit such as \"512MiB\" or \"4GiB\"";
  if (const auto number = node->value_exact<int64_t>(); number.has_value() && *number >= 0) {
    *out = static_cast<uint64_t>(*number);
    return;
  }
  const auto text = node->value_exact<std::string>();
  const auto parsed = text.has_value() ? ParseByteSize(*text) : std::nullopt;
  if (parsed.has_value()) {
    *out = *parsed;
  } else if (text.has_value()) {
    errors_->Add(node->source(), absl::StrCat("key \"", key, "\" in ", name_, " is \"", *text,
                                              "\", allowed is ", kWanted));
  } else {
    WrongType(*node, key, kWanted);
  }
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
  std::optional<std::string> value = element.value_exact<std::string>();
  if (const auto number = element.value_exact<int64_t>(); key == "users" && number) {
    value = absl::StrCat(*number);
  }
  if (!value.has_value()) return WrongType(element, key, "a string or an array of strings");
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
    const auto text = value.value_exact<std::string>();
    const std::string wrong = problem(name);
    if (!wrong.empty()) {
      errors_->Add(key_of_table.source(),
                   absl::StrCat("key \"", key, "\" in ", name_, " has \"", name, "\", ", wrong));
    } else if (!text.has_value() || text->find('\0') != std::string::npos) {
      WrongType(value, absl::StrCat(key, ".", name), "a string without NUL");
    } else {
      (*out)[name] = *text;
    }
  }
}

void SectionReader::Parsed(const std::string& key, const std::string& allowed,
                           const std::function<bool(const std::string&)>& parse) {
  const toml::node* node = Find(key);
  if (node == nullptr) return;
  const auto value = node->value_exact<std::string>();
  if (!value.has_value()) return WrongType(*node, key, allowed);
  if (!parse(*value)) {
    errors_->Add(node->source(), absl::StrCat("key \"", key, "\" in ", name_, " is \"", *value,
                                              "\", allowed is ", allowed));
  }
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
    const std::string nearest = NearestName(name, known_);
    errors_->Add(
        key.source(),
        absl::StrCat("unknown key \"", name, "\" in ", name_,
                     nearest.empty() ? "" : absl::StrCat(" (did you mean \"", nearest, "\"?)"),
                     "; allowed are ", absl::StrJoin(known_, ", ")));
  }
}

}  // namespace sluice
