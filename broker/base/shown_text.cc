// SPDX-License-Identifier: Apache-2.0
#include "broker/base/shown_text.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace sluice {
namespace {

constexpr uint32_t kNone = 0xffffffff;

struct Character {
  size_t size;
  uint32_t code;  // kNone: a byte that is part of none.
};

// The first character of `text`, which is not empty, if it is UTF-8 by Unicode's table 3-7:
// shortest forms, no surrogates.
Character FirstCharacter(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {1, lead};
  const size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return {1, kNone};
  uint32_t code = lead & (0x7fU >> size);
  for (size_t i = 1; i < size; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0) != 0x80) return {1, kNone};
    code = code << 6 | (next & 0x3f);
  }
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kLeast[size] || code > 0x10ffff || is_surrogate) return {1, kNone};
  return {size, code};
}

// False for characters that move a terminal's cursor, end a line, or show the text in another
// order.
bool MayBeShown(uint32_t code) {
  const auto within = [code](uint32_t first, uint32_t last) {
    return code >= first && code <= last;
  };
  return code != kNone && !within(0, 0x1f) && !within(0x7f, 0x9f) && !within(0x2028, 0x202e) &&
         !within(0x2066, 0x2069);
}

}  // namespace

std::string ShownText(std::string_view text, std::string_view escaped) {
  std::string out;
  while (!text.empty()) {
    const Character first = FirstCharacter(text);
    const std::string_view bytes = text.substr(0, first.size);
    text.remove_prefix(first.size);
    if (escaped.find(bytes) != std::string_view::npos) {
      out += '\\';
      out += bytes;
    } else if (first.code == '\n') {
      out += "\\n";
    } else if (MayBeShown(first.code)) {
      out += bytes;
    } else {
      for (const char c : bytes)
        absl::StrAppend(&out, "\\x", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    }
  }
  return out;
}

std::string NotExpected(const std::vector<std::string>& words) {
  return absl::StrCat("The following argument", words.size() == 1 ? " was" : "s were",
                      " not expected: ", absl::StrJoin(words, " "));
}

}  // namespace sluice
