// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/handlers/handlers.h"

namespace sluice::worker {
namespace {

// The values of properties that are not named (section 5.7.1).
constexpr cl_bool kNormalized = CL_TRUE;
constexpr cl_addressing_mode kAddressing = CL_ADDRESS_CLAMP;
constexpr cl_filter_mode kFilter = CL_FILTER_NEAREST;

}  // namespace

HandlerResult HandleCreateSampler(Session& session, const pb::CreateSampler& cmd, Call&) {
  auto context = session.objects().Find<ContextObject>(cmd.context_id());
  if (context == nullptr) return CL_INVALID_CONTEXT;
  if (cmd.properties_size() % 2 != 0)
    return absl::InvalidArgumentError("sampler property without a value");
  cl_int status = CL_SUCCESS;
  auto sampler = std::make_shared<SamplerObject>();
  if (cl().clCreateSamplerWithProperties != nullptr) {
    std::vector<cl_sampler_properties> properties(cmd.properties().begin(), cmd.properties().end());
    // An empty list, said in full: a driver may crash on none.
    if (properties.empty()) {
      properties = {CL_SAMPLER_NORMALIZED_COORDS, kNormalized,
                    CL_SAMPLER_ADDRESSING_MODE,   kAddressing,
                    CL_SAMPLER_FILTER_MODE,       kFilter};
    }
    properties.push_back(0);
    sampler->handle.reset(
        cl().clCreateSamplerWithProperties(context->handle.get(), properties.data(), &status));
  } else {
    // A loader of OpenCL 1.2.
    cl_bool normalized = kNormalized;
    cl_addressing_mode addressing = kAddressing;
    cl_filter_mode filter = kFilter;
    for (int i = 0; i < cmd.properties_size(); i += 2) {
      const auto value = static_cast<cl_uint>(cmd.properties(i + 1));
      if (cmd.properties(i) == CL_SAMPLER_NORMALIZED_COORDS) normalized = value;
      if (cmd.properties(i) == CL_SAMPLER_ADDRESSING_MODE) addressing = value;
      if (cmd.properties(i) == CL_SAMPLER_FILTER_MODE) filter = value;
    }
    sampler->handle.reset(
        cl().clCreateSampler(context->handle.get(), normalized, addressing, filter, &status));
  }
  if (status != CL_SUCCESS) return status;
  sampler->context = std::move(context);
  return session.Add(cmd.sampler_id(), std::move(sampler));
}

}  // namespace sluice::worker
