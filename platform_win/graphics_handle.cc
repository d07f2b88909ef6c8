// SPDX-License-Identifier: Apache-2.0
#include "broker/os/graphics_handle.h"

#include "platform_win/handles/handle_table.h"

namespace sluice::os {

UniqueFd AdoptGraphicsHandle(uintptr_t handle) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the interface knows no HANDLE.
  OwnedHandle owned(reinterpret_cast<HANDLE>(handle));
  if (!owned.valid()) return UniqueFd();
  return AddDescriptor(std::make_shared<HandleObject>(HandleKind::kGraphics, std::move(owned)));
}

absl::StatusOr<uintptr_t> GraphicsHandleOf(int fd) {
  const std::shared_ptr<HandleObject> object = FindDescriptor(fd, HandleKind::kGraphics);
  if (object == nullptr) {
    return absl::InvalidArgumentError("the descriptor is no handle of a graphics object");
  }
  return reinterpret_cast<uintptr_t>(object->handle());
}

}  // namespace sluice::os
