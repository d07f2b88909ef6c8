// SPDX-License-Identifier: Apache-2.0
#include "client_icd/libsluice/texture_turns.h"

namespace sluice::client {
namespace {

constexpr absl::Duration kDeviceTimeout = absl::Seconds(10);

}  // namespace

void BeginTextureTurn(TextureFence* fence, sluice_hold* hold) {
  if (hold->indeterminate != 0 || hold->generation == 0) return;
  if (!fence->WaitFor(hold->generation, kDeviceTimeout).ok()) hold->indeterminate = 1;
}

uint32_t EndTextureTurn(TextureFence* fence, sluice_access access, const sluice_hold& hold,
                        uint32_t flags) {
  if (!AreReleaseFlags(flags)) return flags;
  if (access == SLUICE_READ || (flags & SLUICE_CONTENTS_UNTOUCHED) != 0) {
    // Late or not, it must be given up: the next writer's own wait is what is left to them.
    (void)fence->WaitForOwnWork(kDeviceTimeout);
    return flags;
  }
  const absl::Status signalled = fence->SignalBehindWork(hold.generation + 1);
  return signalled.ok() ? flags : flags | SLUICE_CONTENTS_INDETERMINATE;
}

}  // namespace sluice::client
