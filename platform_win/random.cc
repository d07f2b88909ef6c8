// SPDX-License-Identifier: Apache-2.0
#include "broker/os/random.h"

#include <windows.h>
// After windows.h.
#include <bcrypt.h>

namespace sluice::os {

absl::Status FillRandom(void* out, size_t size) {
  const NTSTATUS status = ::BCryptGenRandom(
      nullptr, static_cast<PUCHAR>(out), static_cast<ULONG>(size), BCRYPT_USE_SYSTEM_PREFERRED_RNG);
  return status == 0 ? absl::OkStatus() : absl::InternalError("BCryptGenRandom failed");
}

}  // namespace sluice::os
