// SPDX-License-Identifier: Apache-2.0
#include "broker/os/foreign_memory.h"

#include <cstring>

#include "broker/os/shared_memory.h"
#include "platform_win/handles/section.h"

namespace sluice::os {

absl::StatusOr<ForeignMemory> DescribeForeignMemory(int fd) {
  const std::shared_ptr<HandleObject> object = FindDescriptor(fd, HandleKind::kSection);
  if (object == nullptr) return absl::InvalidArgumentError("the descriptor is no section");
  const absl::StatusOr<SectionFacts> facts = DescribeSection(object->handle());
  if (!facts.ok()) return facts.status();
  ForeignMemory memory;
  memory.kind = facts->committed ? ForeignMemoryKind::kSealed : ForeignMemoryKind::kUnsealed;
  memory.size_bytes = facts->size_bytes;
  memory.writable = facts->writable;
  return memory;
}

// A section is never a device's memory.
absl::Status CheckDeviceMemory(int) {
  return absl::UnimplementedError("no memory of a device's is imported on Windows yet");
}

absl::Status WaitForDevices(int, const ForeignMemory&, bool, absl::Time) {
  return absl::OkStatus();
}
absl::Status BeginAccess(int, const ForeignMemory&, bool) { return absl::OkStatus(); }
absl::Status EndAccess(int, const ForeignMemory&, bool) { return absl::OkStatus(); }

// There are no calls to read and write a section of a file. It could only be mapped, and then an
// access would fault when its disk or its server is gone.
absl::Status ReadForeignMemory(int, uint8_t*, uint64_t) {
  return absl::UnimplementedError("a section of a file is not taken as memory");
}
absl::Status WriteForeignMemory(int, const uint8_t*, uint64_t) {
  return absl::UnimplementedError("a section of a file is not taken as memory");
}

}  // namespace sluice::os
