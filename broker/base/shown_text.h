// SPDX-License-Identifier: Apache-2.0
// Text of another process, made fit for a line on a terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice {

// `text` on one line: "\n" and "\xNN" stand for what ends lines, moves a terminal's cursor, turns
// the text around, or is not UTF-8; a character of `escaped` gets a backslash before it.
std::string ShownText(std::string_view text, std::string_view escaped = "");

// Says that nobody expected these words of a command line, which it names in their order.
std::string NotExpected(const std::vector<std::string>& words);

}  // namespace sluice
