// SPDX-License-Identifier: Apache-2.0
// The include files of a program that is about to be built. Build options may name folders of the
// application's host
// (`-I dir`, or a -D value that sources put together to a path); the worker has another file
// system. So the client finds what the sources may include and sends it along; the worker keeps it
// under a folder of the session.
//
// The scan is textual and over-approximates: conditional compilation is ignored, every definition
// of a macro counts. A file that cannot be found or read is left out: the compiler says so by
// itself. Trusts the application with its own files, and bounds what it takes. Thread-safe: no
// state.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "client_icd/program_headers/include_paths.h"

namespace sluice::client {

inline constexpr size_t kMaxIncludeFiles = 4096;
inline constexpr size_t kMaxIncludeBytes = size_t{64} << 20;

struct FoundInclude {
  std::string path;  // Absolute, without ".", ".." and doubled slashes; where `steps` lead.
  std::string contents;
};

struct IncludeScan {
  std::string options;  // The application's, with every folder of `directories` written as where
                        // it lies.
  std::vector<FoundInclude> files;
  std::vector<IncludeStep> steps;        // The links and folders that the files' paths lead
                                         // through.
  std::vector<std::string> directories;  // As they stand in `options`; each once.
  bool lacks_value = false;              // The last option is -I or -D, and has none.
};

// `sources` are the program's text and that of its embedded headers. Relative paths start at
// `current_directory`, which is absolute, or empty if it is not known.
IncludeScan ScanIncludes(const std::vector<std::string_view>& sources, std::string_view options,
                         const std::string& current_directory);

}  // namespace sluice::client
