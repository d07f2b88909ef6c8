// SPDX-License-Identifier: Apache-2.0
#include "client_icd/program_headers/absolute_includes.h"

#include <utility>
#include <vector>

#include "broker/os/this_process.h"
#include "proto/include_host.h"

namespace sluice::client {
namespace {

size_t SkipBlanks(std::string_view text, size_t at) {
  while (at < text.size() && IsBlank(text[at])) ++at;
  return at;
}

bool StartsWith(std::string_view text, size_t at, std::string_view what) {
  return text.substr(at, what.size()) == what;
}

// The end of the logical line that begins at `at`: a backslash at a line's end joins the next one.
size_t LineEnd(std::string_view text, size_t at) {
  for (; at < text.size(); ++at) {
    if (text[at] != '\n') continue;
    size_t before = at;
    if (before > 0 && text[before - 1] == '\r') --before;
    if (before == 0 || text[before - 1] != '\\') return at;
  }
  return text.size();
}

// A path in the text that is written anew, without what is around it.
struct Path {
  size_t begin;
  size_t end;
  std::string written;
};

class Rewriter {
 public:
  explicit Rewriter(std::string_view text) : text_(text) {}

  std::string Run() {
    for (size_t at = 0; at < text_.size(); at = LineEnd(text_, at) + 1) ReadLine(at);
    std::string out;
    size_t from = 0;
    for (const Path& path : paths_) {
      out.append(text_.substr(from, path.begin - from)).append(path.written);
      from = path.end;
    }
    return out.append(text_.substr(from));
  }

 private:
  void ReadLine(size_t at) {
    at = SkipBlanks(text_, at);
    // A comment may stand before a directive, and a digraph for its sign.
    if (StartsWith(text_, at, "/*")) {
      const size_t end = text_.find("*/", at);
      if (end == std::string_view::npos) return;
      at = SkipBlanks(text_, end + 2);
    }
    if (StartsWith(text_, at, "%:")) ++at;
    if (at >= text_.size() || (text_[at] != '#' && text_[at] != ':')) return;
    at = SkipBlanks(text_, at + 1);
    for (const std::string_view word : {"include_next", "include", "import", "embed"}) {
      if (!StartsWith(text_, at, word)) continue;
      NoteOperand(SkipBlanks(text_, at + word.size()), /*only_files=*/false);
      return;
    }
    if (StartsWith(text_, at, "define")) return ReadDefine(at + 6);
    if (StartsWith(text_, at, "if") || StartsWith(text_, at, "elif")) ReadCondition(at);
  }

  // At `at` may stand the quote or bracket before a path.
  void NoteOperand(size_t at, bool only_files) {
    if (at + 1 >= text_.size() || (text_[at] != '"' && text_[at] != '<')) return;
    const size_t end = text_.find(text_[at] == '"' ? '"' : '>', at + 1);
    if (end == std::string_view::npos || end > LineEnd(text_, at)) return;
    const std::string_view path = text_.substr(at + 1, end - at - 1);
    std::string portable = os::PortablePath(path);
    if (portable.empty() || (only_files && !os::IsFileOfThisHost(portable))) return;
    if (portable[0] == '/') portable.insert(0, wire::kIncludeHostFolder);
    if (portable != path) paths_.push_back({at + 1, end, std::move(portable)});
  }

  // #define NAME "/path": it may become the operand of an include, or be any other text.
  void ReadDefine(size_t at) {
    at = SkipBlanks(text_, at);
    while (at < text_.size() && !IsBlank(text_[at]) && text_[at] != '\n') ++at;
    NoteOperand(SkipBlanks(text_, at), /*only_files=*/true);
  }

  void ReadCondition(size_t at) {
    const size_t end = LineEnd(text_, at);
    for (at = text_.find("__has_", at); at < end; at = text_.find("__has_", at + 1)) {
      const size_t open = text_.find('(', at);
      if (open < end) NoteOperand(SkipBlanks(text_, open + 1), /*only_files=*/false);
    }
  }

  const std::string_view text_;
  std::vector<Path> paths_;  // In order.
};

}  // namespace

std::string RewriteAbsoluteIncludes(std::string_view text) { return Rewriter(text).Run(); }

}  // namespace sluice::client
