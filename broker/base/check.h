// SPDX-License-Identifier: Apache-2.0
//
// CHECK: stops the process at one of its own bugs, with the place and the condition.
// It is never reachable from a peer's bytes: what a peer sends wrong is a violation, an
// absl::Status. Usable from any thread and from the ICD; prints to stderr without allocating.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace sluice::internal {

[[noreturn]] inline void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "sluice: internal error at %s:%d: CHECK(%s) failed\n", file, line,
               condition);
  std::abort();
}

}  // namespace sluice::internal

#define SLUICE_CHECK(condition)                                        \
  do {                                                                 \
    if (!(condition)) [[unlikely]]                                     \
      ::sluice::internal::CheckFailed(__FILE__, __LINE__, #condition); \
  } while (false)
