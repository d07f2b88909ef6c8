// SPDX-License-Identifier: Apache-2.0
// A platform: one real platform of one endpoint's daemon. Made from the snapshot when the loader
// first asks, never destroyed. Immutable after construction, hence thread-safe.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "client_icd/base/object.h"
#include "client_icd/objects/device.h"
#include "proto/snapshot.pb.h"

namespace sluice::client {

namespace pb = v1;

class Endpoint;

class Platform : public ClObject<Platform, cl_platform_id, ObjectKind::kPlatform> {
 public:
  // `shares_resources`: its daemon is on this machine, so that what that owns can be mapped here,
  // and lets its clients have it.
  Platform(Endpoint* endpoint, const pb::PlatformSnapshot::Platform& described,
           bool shares_resources);

  Endpoint& endpoint() const { return *endpoint_; }
  bool shares_resources() const { return shares_resources_; }
  std::span<Device* const> devices() const { return devices_; }
  const InfoTable& info() const { return info_; }
  cl_int GetInfo(cl_platform_info param_name, const InfoSink& sink) const;
  bool HasExtension(std::string_view name) const {
    return info_.HasWord(CL_PLATFORM_EXTENSIONS, name);
  }

 private:
  Endpoint* const endpoint_;
  const InfoTable info_;
  const bool shares_resources_;
  std::vector<Device*> devices_;
};

}  // namespace sluice::client
