// SPDX-License-Identifier: Apache-2.0
//
// The native side of a turn at a Direct3D resource: the daemon says whose turn it is, the
// resource's fence says when the device is done with the turn before. The value of the fence is
// the generation: a writer's device signals the one that its release will make, behind its work;
// whoever comes next waits for the generation that the daemon names.
//
//   writer                 daemon            fence      next
//   acquire  <-- generation 4
//   draws
//   Signal(5) ------------------------------> (5, once it has drawn)
//   release  -------------> 5
//                           5 -----------------------> acquire: waits for 5
//
// A reader has nothing to signal: its release waits until its own device is done. Every wait is
// bounded, since a process may die with work in its queue; what did not come in time is told as
// indeterminate contents. A writer that died or gave up leaves no signal: nobody waits.
//
// `TextureFence` is the seam to Direct3D (windows/d3d11_texture.cc). Owned by a sluice_d3d11.
// Thread-compatible.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client_icd/libsluice/sluice/sluice.h"

namespace sluice::client {

class TextureFence {
 public:
  virtual ~TextureFence() = default;
  // Once the work that the application's device has been given so far is done.
  virtual absl::Status SignalBehindWork(uint64_t generation) = 0;
  // kDeadlineExceeded.
  virtual absl::Status WaitFor(uint64_t generation, absl::Duration at_most) = 0;
  // Until the work that the application's device has been given so far is done.
  virtual absl::Status WaitForOwnWork(absl::Duration at_most) = 0;
};

// After the daemon's acquire has answered: waits for the turn before. If that does not end in time,
// the contents are indeterminate, and the turn is the caller's all the same.
void BeginTextureTurn(TextureFence* fence, sluice_hold* hold);

// True if sluice_release takes them.
constexpr bool AreReleaseFlags(uint32_t flags) {
  constexpr uint32_t kBoth = SLUICE_CONTENTS_INDETERMINATE | SLUICE_CONTENTS_UNTOUCHED;
  return (flags & ~kBoth) == 0 && flags != kBoth;
}

// Before the daemon's release: the flags to release with. If the device cannot be asked, a writer's
// contents are indeterminate. Flags that the release will refuse come back as they are, and the
// device is asked nothing: the turn goes on.
uint32_t EndTextureTurn(TextureFence* fence, sluice_access access, const sluice_hold& hold,
                        uint32_t flags);

}  // namespace sluice::client
