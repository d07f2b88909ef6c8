// SPDX-License-Identifier: Apache-2.0
//
// A section (shared memory) with the events that wake sleepers on words in it. On Windows nobody
// can sleep on a word that another process changes: so a section takes its doorbells along to other
// processes. Immutable.
#pragma once

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "platform_win/handles/handle_table.h"

namespace sluice::os {

class Section final : public HandleObject {
 public:
  // A word's bell is chosen by the parity of its 64-byte line and by the bit it is waited for with
  // (doorbell.cc).
  static constexpr size_t kBells = 4;
  using Bells = std::array<OwnedHandle, kBells>;

  // Bells may all be missing: then nobody sleeps on this memory.
  Section(OwnedHandle section, Bells bells)
      : HandleObject(HandleKind::kSection, std::move(section)), bells_(std::move(bells)) {}

  const Bells& bells() const { return bells_; }

 private:
  const Bells bells_;
};

struct SectionFacts {
  uint64_t size_bytes = 0;  // Rounded up to pages, on Windows.
  // Backed by the paging file, all of it: no access can fault, and it cannot grow.
  bool committed = false;
  bool writable = false;  // By this handle.
};

absl::StatusOr<SectionFacts> DescribeSection(HANDLE section);

}  // namespace sluice::os
