// SPDX-License-Identifier: Apache-2.0
#include "broker/os/command_line.h"

#include <windows.h>
// After windows.h.
#include <shellapi.h>

#include <string>
#include <vector>

#include "platform_win/wide_text.h"

namespace sluice::os {

void TakeCommandLine(int* argc, char*** argv) {
  int count = 0;
  wchar_t** const words = ::CommandLineToArgvW(::GetCommandLineW(), &count);
  if (words == nullptr) return;
  static auto* const texts = new std::vector<std::string>;
  static auto* const pointers = new std::vector<char*>;
  for (int i = 0; i < count; ++i) texts->push_back(FromWide(words[i]));
  // Windows' users ask for help by "/?"; behind another word it is that word's value.
  for (size_t i = 1; i < texts->size() && i < 3; ++i) {
    std::string& word = (*texts)[i];
    if (word == "/?" || word == "-?") word = "--help";
  }
  ::LocalFree(words);
  for (std::string& text : *texts) pointers->push_back(text.data());
  pointers->push_back(nullptr);
  *argc = count;
  *argv = pointers->data();
}

}  // namespace sluice::os
