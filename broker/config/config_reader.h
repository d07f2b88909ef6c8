// SPDX-License-Identifier: Apache-2.0
//
// Reads one table of a TOML file, key by key. Each key that is asked for is thereby allowed; Finish
// refuses the rest, with the list of what is allowed and the nearest name. Errors carry file, line
// and column and are collected, so that one run shows all of them.
//
// Used by config.cc only, so that no other file includes toml++. Thread-compatible.
#pragma once

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace sluice::broker {

// All that is wrong with one file.
class ConfigErrors {
 public:
  explicit ConfigErrors(std::string file) : file_(std::move(file)) {}

  void Add(const toml::source_region& where, const std::string& message);
  // A key of `section` that nobody asked for; `allowed` are those that somebody did. The message is
  // made once all sections are read: the key may belong in another one.
  void AddUnknown(const toml::source_region& where, const std::string& key,
                  const std::string& section, const std::vector<std::string>& allowed);
  void NoteKey(const std::string& key, const std::string& section) {
    sections_of_[key].insert(section);
  }

  // Parses the file. A value that TOML does not know, such as an integer of more than 64 bits or a
  // text without quotes, stands in the table as a string, for its key's reader to refuse.
  toml::parse_result Parse(const std::string& text);
  // The text that is written there, if `node` stands for such a value; else null.
  const std::string* BareAt(const toml::node& node) const;

  size_t count() const { return found_.size() + unknown_.size(); }
  // "file:line:column" of a value, or of a key.
  std::string Place(const toml::source_region& where) const;
  // A line for each, in the file's order. After all sections are read.
  std::string Text() const;

 private:
  struct Error {
    uint32_t line;
    uint32_t column;
    std::string text;
  };
  struct Unknown {
    toml::source_region where;
    std::string key;
    std::string section;
    std::vector<std::string> allowed;
  };
  std::string Describe(const Unknown& unknown) const;
  bool QuoteBareValue(const toml::source_position& inside, std::string* text);

  const std::string file_;
  std::vector<Error> found_;
  std::vector<Unknown> unknown_;
  std::map<std::pair<uint32_t, uint32_t>, std::string> bare_;  // By line and column.
  std::map<std::string, std::set<std::string>> sections_of_;
};

// Behind what a backslash between double quotes has led to: paths of Windows have them.
inline constexpr char kBackslashAdvice[] =
    ": between double quotes a backslash begins an escape; write a path that has one between "
    "single "
    "quotes, as 'C:\\folder\\file'";

// The name of what is outside of every table.
inline constexpr char kTopLevel[] = "the file";

class SectionReader {
 public:
  // The fault of a value, in words that follow "is "VALUE""; empty if there is none.
  using Problem = std::function<std::string(const std::string& value)>;

  // `table` may be null: then every key keeps its default. `name` is as written: "[limits]".
  SectionReader(const toml::table* table, std::string name, ConfigErrors* errors)
      : table_(table), name_(std::move(name)), errors_(errors) {}

  void String(const std::string& key, std::string* out);
  // With `fixed` not empty it must stay as it is; `fixed` says why, in words after "allowed is".
  void Boolean(const std::string& key, bool* out, const std::string& fixed = "");
  void Integer(const std::string& key, int64_t minimum, int64_t maximum, int64_t* out);
  void Count(const std::string& key, uint64_t minimum, uint64_t* out);
  // An integer, or "4GiB": 0, or `least` and more.
  void Bytes(const std::string& key, uint64_t* out, uint64_t least = 0);
  // Each string must be one to which `problem` has nothing to say.
  void StringOrList(const std::string& key, const Problem& problem, std::vector<std::string>* out);
  // As above for the names; `problem` does not see the values, which only must be without NUL.
  void StringTable(const std::string& key, const Problem& problem,
                   std::map<std::string, std::string>* out);
  // A string which `parse` takes; `allowed` says in words what that is.
  void Parsed(const std::string& key, const std::string& allowed,
              const std::function<bool(const std::string&)>& parse);

  // "file:line:column" of the key's value; "" if the file does not have the key.
  std::string PlaceOf(const std::string& key) const;

  // Tables inside this one.
  const toml::table* Table(const std::string& key);
  std::vector<const toml::table*> TableArray(const std::string& key);

  void Finish();  // Refuses keys that were not asked for.

 private:
  const toml::node* Find(const std::string& key);
  void WrongType(const toml::node& node, const std::string& key, const std::string& wanted);
  std::optional<std::string> Text(const toml::node& node) const;  // None: it is no string.
  void NoText(const toml::node& node, const std::string& key, const std::string& wanted);
  bool RefuseControl(const toml::node& node, const std::string& key, const std::string& value);
  void ListElement(const toml::node& element, const std::string& key, const Problem& problem,
                   std::vector<std::string>* out);

  const toml::table* table_;
  std::string name_;
  ConfigErrors* errors_;
  std::vector<std::string> known_;
};

// The one of `names` that a person probably meant by `written`; "" if none is near.
std::string NearestName(const std::string& written, const std::vector<std::string>& names);

}  // namespace sluice::broker
