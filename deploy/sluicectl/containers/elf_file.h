// SPDX-License-Identifier: Apache-2.0
//
// The needs and exports of an ELF file of this kind of machine: enough to say, without loading it,
// why a loader would refuse it elsewhere. The file is not trusted: whatever is in it, reading it
// ends with an answer or an error. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace sluice::ctl {

struct ElfFile {
  struct VersionNeed {
    std::string library;  // "libc.so.6"
    std::string version;  // "GLIBC_2.34"
  };
  uint16_t machine = 0;                    // EM_X86_64
  std::string interpreter;                 // The loader that a program asks for; "" of a library.
  std::vector<std::string> needed;         // Libraries, by name.
  std::vector<VersionNeed> version_needs;  // Of those libraries' symbols.
  std::vector<std::string> versions;       // That it defines itself.
};

// kInvalidArgument: it is no 64-bit little-endian ELF file, or is damaged.
absl::StatusOr<ElfFile> ParseElf(std::string_view bytes);

// The same of an open file of a size that such files have.
absl::StatusOr<ElfFile> ReadElf(int fd);
// Of the file at that path.
absl::StatusOr<ElfFile> ReadElfAt(const std::string& path);

// True if this library comes with glibc itself, on every distribution.
bool IsGlibcLibrary(std::string_view name);

// The libraries that `file` needs and glibc does not bring.
std::vector<std::string> NeededBesideGlibc(const ElfFile& file);

// The newest GLIBC_x.y that it needs, as "2.34"; "" if it needs none.
std::string NewestGlibcNeeded(const ElfFile& file);
// The newest that a libc.so.6 has.
std::string NewestGlibcDefined(const ElfFile& libc);
// True if version `a` ("2.34") is newer than `b`.
bool IsNewerVersion(const std::string& a, const std::string& b);

}  // namespace sluice::ctl
