// SPDX-License-Identifier: Apache-2.0
#include "proto/network/token_text.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace sluice::wire {
namespace {

constexpr size_t kMinTokenLength = 16;

// True if the header that carries a token can carry this one. UTF-16 cannot be.
bool CanBeSent(absl::string_view token) {
  return std::all_of(token.begin(), token.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

absl::Status CheckToken(absl::string_view line, size_t number) {
  if (!CanBeSent(line)) {
    return absl::InvalidArgumentError(
        absl::StrCat("line ", number,
                     " has bytes that no request can carry: save the file as plain text, in ASCII "
                     "or UTF-8 (PowerShell's > writes UTF-16)"));
  }
  if (line.size() > kMaxTokenBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "line ", number, " is longer than ", kMaxTokenBytes, " bytes: no request can carry it"));
  }
  if (line.size() >= kMinTokenLength) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("line ", number, " has ", line.size(), " characters; a token needs at least ",
                   kMinTokenLength, " (make one with: openssl rand -hex 32)"));
}

// Takes "@lab " away from the line's beginning; "" if it does not begin so.
absl::string_view TenantOf(absl::string_view* line) {
  const size_t space = line->find(' ');
  if (line->front() != '@' || space == absl::string_view::npos) return "";
  const absl::string_view name = line->substr(1, space - 1);
  if (!IsTenantName({name.data(), name.size()})) return "";
  *line = absl::StripLeadingAsciiWhitespace(line->substr(space));
  return name;
}

}  // namespace

bool IsTenantName(std::string_view name) {
  return !name.empty() && name.size() <= 32 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

absl::StatusOr<std::vector<std::string>> ParseTokens(std::string_view file, size_t most,
                                                     std::vector<std::string>* tenants) {
  absl::string_view text(file.data(), file.size());
  absl::ConsumePrefix(&text, "\xef\xbb\xbf");  // Some editors begin UTF-8 with a mark.
  std::vector<std::string> tokens;
  size_t number = 0;
  for (const absl::string_view raw : absl::StrSplit(text, '\n')) {
    if (tokens.size() >= most) break;
    ++number;
    absl::string_view line = absl::StripAsciiWhitespace(raw);
    if (line.empty() || line[0] == '#') continue;
    const absl::string_view tenant = TenantOf(&line);
    if (absl::Status good = CheckToken(line, number); !good.ok()) return good;
    tokens.emplace_back(line);
    if (tenants != nullptr) tenants->emplace_back(tenant);
  }
  if (!tokens.empty()) return tokens;
  return absl::InvalidArgumentError("it holds no token; write one a line (openssl rand -hex 32)");
}

}  // namespace sluice::wire
