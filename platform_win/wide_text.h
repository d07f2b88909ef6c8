// SPDX-License-Identifier: Apache-2.0
// Sluice's texts are UTF-8; Windows takes and gives UTF-16. Characters that are not valid in one
// become U+FFFD in the other. Thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace sluice::os {

std::wstring ToWide(std::string_view text);
std::string FromWide(std::wstring_view text);

// Appends a word to a command line, in quotes, so that CommandLineToArgvW and the C runtime return
// it unchanged.
void AppendQuoted(std::string_view word, std::wstring* line);

}  // namespace sluice::os
