// SPDX-License-Identifier: Apache-2.0
#include "broker/os/random.h"

#include <sys/random.h>

#include <cerrno>

#include "platform_linux/errno_status.h"

namespace sluice::os {

absl::Status FillRandom(void* out, size_t size) {
  auto* bytes = static_cast<char*>(out);
  for (size_t done = 0; done < size;) {
    const ssize_t got = ::getrandom(bytes + done, size - done, 0);
    if (got < 0 && errno != EINTR) return ErrnoStatus(errno, "getrandom");
    if (got > 0) done += static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

}  // namespace sluice::os
