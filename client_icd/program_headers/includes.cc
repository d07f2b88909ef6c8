// SPDX-License-Identifier: Apache-2.0
#include "client_icd/program_headers/includes.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "broker/os/this_process.h"
#include "client_icd/program_headers/absolute_includes.h"

namespace sluice::client {
namespace {

constexpr int kMaxExpansionDepth = 8;
constexpr size_t kMaxAlternatives = 16;
constexpr size_t kMaxMacroText = 4096;

bool IsIdentifierStart(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool IsIdentifierPart(char c) { return IsIdentifierStart(c) || (c >= '0' && c <= '9'); }

std::string_view Trim(std::string_view text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

// Blanks and comments off the front.
std::string_view SkipToToken(std::string_view line) {
  for (line = Trim(line); line.starts_with("/*"); line = Trim(line)) {
    const size_t end = line.find("*/", 2);
    if (end == line.npos) return {};
    line.remove_prefix(end + 2);
  }
  return line;
}

// A word of the options: its text without quotes and escapes, and where each character stood.
struct Word {
  std::string text;
  std::vector<size_t> at;
};

// True if a backslash before `next` makes it an ordinary character and is none itself.
bool Escapes(char next) { return !os::BackslashSeparatesFolders() || next == '"' || next == '\''; }

std::vector<Word> SplitOptions(std::string_view options) {
  std::vector<Word> words;
  size_t i = 0;
  while (i < options.size()) {
    if (IsBlank(options[i]) || options[i] == '\n') {
      ++i;
      continue;
    }
    Word word;
    char quote = 0;
    for (; i < options.size(); ++i) {
      const char c = options[i];
      if (quote == 0 && (IsBlank(c) || c == '\n')) break;
      if (c == quote) {
        quote = 0;
      } else if (quote == 0 && (c == '"' || c == '\'')) {
        quote = c;
      } else {
        if (c == '\\' && i + 1 < options.size() && Escapes(options[i + 1])) ++i;
        word.text.push_back(options[i]);
        word.at.push_back(i);
      }
    }
    words.push_back(std::move(word));
  }
  return words;
}

// A part of the options to be written anew.
struct Edit {
  size_t begin;
  size_t end;
  std::string text;
};

struct Macro {
  std::string value;
  size_t begin = 0;  // Where the value, without quotes around it, stands in the options; nowhere if
                     // begin == end.
  size_t end = 0;
};

class Scanner {
 public:
  Scanner(std::string_view options, const std::string& current_directory)
      : options_(options), current_directory_(paths_.Folder(current_directory, "")) {}

  void ReadOptions();
  void ScanText(std::string_view text, const std::string& directory);
  void ScanQueue();
  IncludeScan Finish();

 private:
  using Values = std::vector<std::string>;

  // The file that a directive names.
  struct Operand {
    std::string text;       // "x", <x>, or what macros make one of these.
    std::string directory;  // Of the file that the directive is in; empty for the sources.
    bool every = false;     // The file of that name in every folder: include_next.
  };
  // A file that is still to be scanned.
  struct Unscanned {
    size_t index;           // In result_.files.
    std::string directory;  // The one that it is found in.
  };

  void AddFolder(const Word& word, size_t from);
  void AddMacro(const Word& word, size_t from);
  void ReadDirective(std::string_view line, const std::string& directory);
  void ReadDefine(std::string_view rest);
  void ReadCondition(std::string_view line, const std::string& directory);
  void ReadOperand(Operand operand);
  void Resolve(std::string_view text, const Operand& operand);
  void Expand(std::string_view text, int depth, Values* out);
  bool TakeFile(std::string_view name, const std::string& base);
  size_t AddFile(const std::string& path, const std::string* contents);
  bool FindFile(std::string_view written, bool quoted, const Operand& operand);
  void NoteMacroFolders(const std::string& path);
  void AddDirectory(const std::string& directory);
  void NoteAbsolute(std::string_view operand) {
    // A quote or bracket stands before the path.
    if (operand.size() > 1 && os::PortablePath(operand.substr(1))[0] == '/')
      names_absolute_paths_ = true;
  }

  const std::string_view options_;
  IncludePaths paths_;
  const std::string current_directory_;  // Resolved, or empty.
  std::vector<std::string> folders_;     // -I, in order.
  std::vector<Edit> edits_;
  std::multimap<std::string, Macro, std::less<>> macros_;
  std::vector<Operand> computed_;       // A macro of a later file may complete them.
  std::set<std::string> taken_;         // The places where compilers find files: paths that may be
                                        // links.
  std::map<std::string, size_t> sent_;  // The paths of result_.files, and which each is.
  std::vector<Unscanned> queue_;
  size_t taken_bytes_ = 0;
  bool uses_current_directory_ = false;
  bool names_absolute_paths_ = false;  // In a text: the client has rewritten them.
  IncludeScan result_;
};

void Scanner::AddDirectory(const std::string& directory) {
  auto& all = result_.directories;
  if (std::find(all.begin(), all.end(), directory) == all.end()) all.push_back(directory);
}

void Scanner::AddFolder(const Word& word, size_t from) {
  if (from >= word.text.size()) return;
  const std::string folder =
      paths_.Folder(os::PortablePath(std::string_view(word.text).substr(from)), current_directory_);
  if (folder.empty()) return;
  folders_.push_back(folder);
  AddDirectory(folder);
  size_t begin = word.at[from];
  size_t end = word.at.back() + 1;
  // Not every compiler takes quotes off, and without a blank they are not
  // needed.
  const bool unquote = begin > 0 && end < options_.size() && options_[begin - 1] == options_[end] &&
                       (options_[end] == '"' || options_[end] == '\'') &&
                       folder.find(' ') == std::string::npos;
  if (unquote || folder != std::string_view(word.text).substr(from)) {
    edits_.push_back({begin - unquote, end + unquote, folder});
  }
}

void Scanner::AddMacro(const Word& word, size_t from) {
  const size_t equals = word.text.find('=', from);
  if (equals == std::string::npos || equals + 1 >= word.text.size()) return;
  const std::string name = word.text.substr(from, equals - from);
  size_t begin = equals + 1;
  size_t end = word.text.size();
  if (end - begin >= 2 && word.text[begin] == '"' && word.text[end - 1] == '"') {
    ++begin;
    --end;
  }
  if (begin == end) return;
  macros_.emplace(
      name, Macro{word.text.substr(begin, end - begin), word.at[begin], word.at[end - 1] + 1});
}

void Scanner::ReadOptions() {
  const std::vector<Word> words = SplitOptions(options_);
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& text = words[i].text;
    if (text.size() < 2 || text[0] != '-' || (text[1] != 'I' && text[1] != 'D')) continue;
    const bool separate = text.size() == 2;
    if (separate && ++i == words.size()) {
      result_.lacks_value = true;
      return;
    }
    if (text[1] == 'I') {
      AddFolder(words[i], separate ? 0 : 2);
    } else {
      AddMacro(words[i], separate ? 0 : 2);
    }
  }
}

// Only object-like macros: of the function-like ones only those matter that put quotes around their
// argument, and they are looked through.
void Scanner::ReadDefine(std::string_view rest) {
  rest = Trim(rest);
  size_t length = 0;
  while (length < rest.size() && IsIdentifierPart(rest[length])) ++length;
  if (length == 0 || length == rest.size() || !IsBlank(rest[length])) return;
  const std::string_view value = Trim(rest.substr(length));
  // Only what can become the operand of an include.
  if (value.empty() || value.size() > kMaxMacroText ||
      value.find_first_of("\"<./(") == std::string_view::npos)
    return;
  NoteAbsolute(value);
  const std::string name(rest.substr(0, length));
  if (macros_.count(name) < kMaxAlternatives) macros_.emplace(name, Macro{std::string(value)});
}

void Scanner::ReadDirective(std::string_view line, const std::string& directory) {
  line = SkipToToken(line);
  if (line.starts_with("define")) return ReadDefine(line.substr(6));
  if (line.starts_with("if") || line.starts_with("elif")) return ReadCondition(line, directory);
  for (const std::string_view word : {"include_next", "include", "import", "embed"}) {
    if (!line.starts_with(word)) continue;
    line.remove_prefix(word.size());
    return ReadOperand({std::string(SkipToToken(line)), directory, word == "include_next"});
  }
}

// __has_include("x"): a file that is asked for is sent too, or the answer would be another.
void Scanner::ReadCondition(std::string_view line, const std::string& directory) {
  for (size_t at = line.find("__has_"); at != line.npos; at = line.find("__has_", at + 1)) {
    const size_t open = line.find('(', at);
    if (open == line.npos) return;
    const std::string_view what = line.substr(at, open - at);
    if (!what.starts_with("__has_include") && !what.starts_with("__has_embed")) continue;
    size_t close = open + 1;
    for (int depth = 1; close < line.size(); ++close) {
      if (line[close] == '(') ++depth;
      if (line[close] == ')' && --depth == 0) break;
    }
    const bool every = what.find("_next") != what.npos;
    ReadOperand({std::string(line.substr(open + 1, close - open - 1)), directory, every});
  }
}

void Scanner::ReadOperand(Operand operand) {
  operand.text = Trim(operand.text);
  if (operand.text.empty() || operand.text.size() > kMaxMacroText) return;
  if (operand.text.front() == '"' || operand.text.front() == '<') {
    NoteAbsolute(operand.text);
    Resolve(operand.text, operand);
  } else {
    computed_.push_back(std::move(operand));
  }
}

void Scanner::ScanText(std::string_view text, const std::string& directory) {
  size_t hash = 0;
  while ((hash = text.find_first_of("#%", hash)) != std::string_view::npos) {
    // The other spelling of # (C99 section 6.4.6).
    const bool digraph = text[hash] == '%';
    if (digraph && text.substr(hash, 2) != "%:") {
      ++hash;
      continue;
    }
    size_t before = hash;
    while (before > 0 && IsBlank(text[before - 1])) --before;
    // A comment may stand before a directive; over-approximation is cheap.
    const bool starts_line = before == 0 || text[before - 1] == '\n' || text[before - 1] == '/';
    hash += digraph ? 2 : 1;
    if (!starts_line) continue;
    std::string line;
    while (true) {
      const size_t end = std::min(text.find('\n', hash), text.size());
      std::string_view part = text.substr(hash, end - hash);
      hash = std::min(end + 1, text.size());
      if (!part.empty() && part.back() == '\r') part.remove_suffix(1);
      const bool goes_on = !part.empty() && part.back() == '\\' && end < text.size();
      if (goes_on) part.remove_suffix(1);
      if (line.size() <= kMaxMacroText) line.append(part);
      if (!goes_on) break;
    }
    ReadDirective(line, directory);
  }
}

// Every text that `text` can become when the known macros in it are replaced.
void Scanner::Expand(std::string_view text, int depth, Values* out) {
  if (out->size() >= kMaxAlternatives || text.size() > kMaxMacroText) return;
  for (size_t i = 0; i < text.size() && depth < kMaxExpansionDepth;) {
    if (text[i] == '"') {
      i = std::min(text.find('"', i + 1), text.size() - 1) + 1;
      continue;
    }
    if (!IsIdentifierStart(text[i])) {
      ++i;
      while (IsIdentifierPart(text[i - 1]) && i < text.size() && IsIdentifierPart(text[i])) ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && IsIdentifierPart(text[end])) ++end;
    const auto [first, last] = macros_.equal_range(text.substr(i, end - i));
    if (first != last) {
      for (auto macro = first; macro != last; ++macro) {
        std::string replaced(text.substr(0, i));
        replaced.append(macro->second.value).append(text.substr(end));
        Expand(replaced, depth + 1, out);
      }
      return;
    }
    i = end;
  }
  out->emplace_back(text);
}

// `text` is the operand, macros replaced: "x", <x>, x, or any of them in calls of function-like
// macros.
void Scanner::Resolve(std::string_view text, const Operand& operand) {
  text = Trim(text);
  while (!text.empty() && text.front() != '"' && text.front() != '<') {
    const size_t open = text.find('(');
    const size_t close = text.rfind(')');
    if (open == std::string_view::npos || close == std::string_view::npos || close < open) break;
    text = Trim(text.substr(open + 1, close - open - 1));
  }
  if (text.empty()) return;
  bool quoted = true;
  if (text.front() == '"' || text.front() == '<') {
    quoted = text.front() == '"';
    const size_t end = text.find(quoted ? '"' : '>', 1);
    if (end == std::string_view::npos) return;
    text = text.substr(1, end - 1);
  }
  if (!text.empty()) FindFile(text, quoted, operand);
}

bool Scanner::FindFile(std::string_view written, bool quoted, const Operand& operand) {
  const std::string name = os::PortablePath(written);
  if (name.front() == '/') {
    if (!TakeFile(name, "")) return false;
    NoteMacroFolders(name);
    return true;
  }
  bool found = quoted && !operand.directory.empty() && TakeFile(name, operand.directory);
  for (const std::string& folder : folders_) {
    if (found && !operand.every) return true;
    found = TakeFile(name, folder) || found;
  }
  if (found || !quoted || !TakeFile(name, current_directory_)) return found;
  uses_current_directory_ = true;
  return true;
}

// An absolute path was put together from a macro's value: that value names a folder which the
// worker must replace.
void Scanner::NoteMacroFolders(const std::string& path) {
  for (const auto& [name, macro] : macros_) {
    if (macro.begin == macro.end) continue;
    const std::string value = os::PortablePath(macro.value);
    if (value.front() != '/' || path.compare(0, value.size(), value) != 0) continue;
    const auto place = paths_.Find(value, "");
    const bool is_file = place.has_value() && taken_.count(place->path) != 0;
    const std::string clean = is_file ? place->path : paths_.Folder(value, "");
    const std::string folder = is_file ? DirectoryOf(clean) : clean;
    if (folder == "/") continue;
    AddDirectory(folder);
    // A slash at the end may be part of how the sources put the path together: it stays.
    const std::string text = value.back() == '/' ? clean + '/' : clean;
    const bool edited =
        std::any_of(edits_.begin(), edits_.end(),
                    [&macro = macro](const Edit& edit) { return edit.begin == macro.begin; });
    if (text != macro.value && !edited) edits_.push_back({macro.begin, macro.end, text});
  }
}

// True if `name` from `base` is a readable file: it is in the result then.
bool Scanner::TakeFile(std::string_view name, const std::string& base) {
  const auto place = paths_.Find(name, base);
  if (!place.has_value()) return false;
  if (taken_.count(place->path) != 0) return true;
  const size_t index = AddFile(place->target, nullptr);
  if (index == result_.files.size()) return false;
  taken_.insert(place->path);
  queue_.push_back({index, DirectoryOf(place->path)});
  // For workers that make no links.
  if (!place->spelled.empty()) AddFile(place->spelled, &result_.files[index].contents);
  return true;
}

// Which of the result's files lies at `path`: with these contents, or read. Their number if it is
// none that can be sent.
size_t Scanner::AddFile(const std::string& path, const std::string* contents) {
  const auto known = sent_.find(path);
  if (known != sent_.end()) return known->second;
  const size_t index = result_.files.size();
  const size_t most = kMaxIncludeBytes - taken_bytes_;
  FoundInclude file{path, contents != nullptr ? *contents : ""};
  if (index >= kMaxIncludeFiles || file.contents.size() > most) return index;
  if (contents == nullptr && !os::ReadFileOfThisHost(path, most, &file.contents)) return index;
  taken_bytes_ += file.contents.size();
  sent_.emplace(path, index);
  result_.files.push_back(std::move(file));
  return index;
}

void Scanner::ScanQueue() {
  // A macro of one file may complete a directive of another: computed directives are tried again
  // until nothing is new.
  size_t files_before = 0;
  do {
    while (!queue_.empty()) {
      const Unscanned next = std::move(queue_.back());
      queue_.pop_back();
      // A copy: the scan may move the vector's elements.
      const std::string contents = result_.files[next.index].contents;
      ScanText(contents, next.directory);
    }
    files_before = result_.files.size();
    for (size_t i = 0; i < computed_.size(); ++i) {
      Values values;
      Expand(computed_[i].text, 0, &values);
      const Operand operand = computed_[i];
      for (const std::string& value : values) Resolve(value, operand);
    }
  } while (result_.files.size() != files_before || !queue_.empty());
}

IncludeScan Scanner::Finish() {
  result_.options = std::string(options_);
  std::sort(edits_.begin(), edits_.end(),
            [](const Edit& a, const Edit& b) { return a.begin > b.begin; });
  for (const Edit& edit : edits_) {
    const bool needs_quotes =
        edit.text.find(' ') != std::string::npos &&
        options_.substr(edit.begin, edit.end - edit.begin).find(' ') == std::string_view::npos;
    result_.options.replace(edit.begin, edit.end - edit.begin,
                            needs_quotes ? '"' + edit.text + '"' : edit.text);
  }
  // The compiler runs in another current directory; what was found from this one is found through
  // -I.
  if (uses_current_directory_) {
    result_.options += current_directory_.find(' ') == std::string::npos
                           ? " -I " + current_directory_
                           : " -I \"" + current_directory_ + '"';
    AddDirectory(current_directory_);
  }
  if (names_absolute_paths_ && !result_.files.empty()) {
    result_.options += " -I /";
    AddDirectory("/");
  }
  for (FoundInclude& file : result_.files) file.contents = RewriteAbsoluteIncludes(file.contents);
  if (!result_.files.empty()) result_.steps = paths_.steps();
  return std::move(result_);
}

}  // namespace

IncludeScan ScanIncludes(const std::vector<std::string_view>& sources, std::string_view options,
                         const std::string& current_directory) {
  Scanner scanner(options, current_directory);
  scanner.ReadOptions();
  for (const std::string_view source : sources) scanner.ScanText(source, "");
  scanner.ScanQueue();
  return scanner.Finish();
}

}  // namespace sluice::client
