// SPDX-License-Identifier: Apache-2.0
#include "broker/os/graphics_handle.h"

#include <fcntl.h>

namespace sluice::os {

UniqueFd AdoptGraphicsHandle(uintptr_t handle) { return UniqueFd(static_cast<int>(handle)); }

absl::StatusOr<uintptr_t> GraphicsHandleOf(int fd) {
  if (::fcntl(fd, F_GETFD) < 0) return absl::InvalidArgumentError("no descriptor");
  return static_cast<uintptr_t>(fd);
}

}  // namespace sluice::os
