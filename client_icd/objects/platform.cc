// SPDX-License-Identifier: Apache-2.0
#include "client_icd/objects/platform.h"

#include <algorithm>
#include <string>

#include "client_icd/base/api.h"
#include "client_icd/base/args.h"
#include "client_icd/objects/endpoint.h"
#include "client_icd/objects/extensions.h"

namespace sluice::client {

Platform::Platform(Endpoint* endpoint, const pb::PlatformSnapshot::Platform& described,
                   bool shares_resources)
    : ClObject(0),
      endpoint_(endpoint),
      info_(described.info()),
      shares_resources_(shares_resources) {
  for (const pb::PlatformSnapshot::Device& device : described.devices()) {
    InfoTable info(device.info());
    // Shared virtual memory needs memory that both sides map.
    if (endpoint->is_remote()) info.Zero(CL_DEVICE_SVM_CAPABILITIES);
    devices_.push_back(new Device(this, device.id(), device.key(), std::move(info)));
  }
}

cl_int Platform::GetInfo(cl_platform_info param_name, const InfoSink& sink) const {
  const auto own_extensions = [this] {
    return OwnPlatformExtensions(shares_resources_, info_.Text(CL_PLATFORM_EXTENSIONS));
  };
  switch (param_name) {
    case CL_PLATFORM_NAME:
      return sink.String("Sluice (" + std::string(info_.Text(CL_PLATFORM_NAME)) + ")");
    case CL_PLATFORM_ICD_SUFFIX_KHR:
      return sink.String("SLUICE");
    case CL_PLATFORM_EXTENSIONS:
      return sink.String(WithExtensions(own_extensions(), info_.Text(param_name)));
    case CL_PLATFORM_EXTENSIONS_WITH_VERSION: {
      const std::string* bytes = info_.Find(CL_PLATFORM_EXTENSIONS_WITH_VERSION);
      if (bytes == nullptr) return info_.Answer(param_name, sink);  // A platform before OpenCL 3.0.
      return sink.Array(WithExtensionVersions(own_extensions(), *bytes));
    }
    default:
      return info_.Answer(param_name, sink);
  }
}

namespace api {

cl_int CL_API_CALL clGetPlatformIDs(cl_uint num_entries, cl_platform_id* platforms,
                                    cl_uint* num_platforms) noexcept {
  if ((num_entries == 0 && platforms != nullptr) ||
      (platforms == nullptr && num_platforms == nullptr)) {
    return CL_INVALID_VALUE;
  }
  const std::vector<Platform*> all = AllPlatforms();
  if (num_platforms != nullptr) *num_platforms = static_cast<cl_uint>(all.size());
  if (all.empty()) return CL_PLATFORM_NOT_FOUND_KHR;
  if (platforms != nullptr) {
    const size_t count = std::min<size_t>(num_entries, all.size());
    for (size_t i = 0; i < count; ++i) platforms[i] = all[i]->handle();
  }
  return CL_SUCCESS;
}

cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id handle, cl_platform_info param_name,
                                     size_t param_value_size, void* param_value,
                                     size_t* param_value_size_ret) noexcept {
  const Platform* platform = Platform::From(handle);
  if (platform == nullptr) return CL_INVALID_PLATFORM;
  return platform->GetInfo(param_name,
                           InfoSink(param_value_size, param_value, param_value_size_ret));
}

}  // namespace api
}  // namespace sluice::client
