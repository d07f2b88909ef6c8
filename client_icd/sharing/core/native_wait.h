// SPDX-License-Identifier: Apache-2.0
// Waiting for native work that only tells when it is asked (Direct3D's event queries), with a
// bound. Thread-safe: no state.
#pragma once

#include <CL/cl.h>

#include <algorithm>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace sluice::client::sharing {

enum class NativeProgress { kPending, kDone, kFailed };

// Asks again and again, less and less often, until it is no longer pending. CL_OUT_OF_RESOURCES if
// it failed (a device that was removed or lost), or is still pending at the deadline.
template <typename Ask>
cl_int WaitForNative(Ask ask, absl::Time deadline) {
  constexpr absl::Duration kShortest = absl::Microseconds(20);
  constexpr absl::Duration kLongest = absl::Milliseconds(1);
  for (absl::Duration pause = kShortest;; pause = std::min(2 * pause, kLongest)) {
    const NativeProgress progress = ask();
    if (progress == NativeProgress::kDone) return CL_SUCCESS;
    if (progress == NativeProgress::kFailed || absl::Now() > deadline) return CL_OUT_OF_RESOURCES;
    absl::SleepFor(pause);
  }
}

}  // namespace sluice::client::sharing
