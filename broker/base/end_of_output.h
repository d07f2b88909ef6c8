// SPDX-License-Identifier: Apache-2.0
//
// The last step of a program that prints. If the disk is full, or nobody takes its output, it has
// failed, whatever it has done before.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace sluice {

// Closes standard output. Returns `code`; in place of 0, `failed`, with a line on stderr, if not all
// that was printed has arrived. A reader who has left (EPIPE) knows.
inline int EndOfOutput(const char* program, int code, int failed) {
  const bool was_lost = std::ferror(stdout) != 0;
  errno = 0;
  if (std::fclose(stdout) == 0 && !was_lost) return code;
  if (errno != EPIPE) {
    std::fprintf(stderr, "%s: not all of the output could be written%s%s\n", program,
                 errno != 0 ? ": " : "", errno != 0 ? std::strerror(errno) : "");
  }
  return code == 0 ? failed : code;
}

}  // namespace sluice
