// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/probe.h"

#include "broker/base/log.h"
#include "broker/os/file.h"
#include "daemon/worker/device_list.h"
#include "daemon/worker/driver.h"
#include "daemon/worker/info_reader.h"
#include "daemon/worker/worker_files.h"
#include "proto/status_macros.h"

namespace sluice::worker {

absl::StatusOr<pb::PlatformSnapshot> TakeSnapshot(const std::string& device_allow_list,
                                                  uint64_t memory_limit) {
  ASSIGN_OR_RETURN(const std::vector<RealPlatform> platforms, ListRealDevices(device_allow_list));
  pb::PlatformSnapshot snapshot;
  for (const RealPlatform& platform : platforms) {
    pb::PlatformSnapshot::Platform& entry = *snapshot.add_platforms();
    ReadPlatformInfo(platform.handle, entry.mutable_info());
    for (const RealDevice& device : platform.devices) {
      pb::PlatformSnapshot::Device& described = *entry.add_devices();
      described.set_id(device.id);
      described.set_key(device.key);
      ReadDeviceInfo(device.handle, memory_limit, described.mutable_info());
    }
  }
  return snapshot;
}

absl::Status Probe(int snapshot_fd, const std::string& device_allow_list, uint64_t memory_limit) {
  RETURN_IF_ERROR(Driver::Load());
  ASSIGN_OR_RETURN(const pb::PlatformSnapshot snapshot,
                   TakeSnapshot(device_allow_list, memory_limit));
  // Drivers that list devices all the same may fail to build.
  if (const std::string unusable = UnusableFolder(); !unusable.empty())
    Log(LogLevel::kWarning, "worker", unusable);
  return os::WriteWhole(snapshot_fd, snapshot.SerializeAsString());
}

}  // namespace sluice::worker
