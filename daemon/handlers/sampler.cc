// SPDX-License-Identifier: Apache-2.0
#include "daemon/handlers/handlers.h"

namespace sluice {

HandlerResult HandleCreateSampler(Session& session, const pb::CreateSampler& cmd, Call&) {
  ContextObject* const context = session.objects().Peek<ContextObject>(cmd.context_id());
  if (context == nullptr) return CL_INVALID_CONTEXT;
  if (cmd.properties_size() % 2 != 0)
    return absl::InvalidArgumentError("sampler property without a value");
  cl_int status = CL_SUCCESS;
  auto sampler = std::make_shared<SamplerObject>();
  if (cl().clCreateSamplerWithProperties != nullptr) {
    std::vector<cl_sampler_properties> properties(cmd.properties().begin(), cmd.properties().end());
    properties.push_back(0);
    sampler->handle.reset(cl().clCreateSamplerWithProperties(
        context->handle.get(), properties.size() == 1 ? nullptr : properties.data(), &status));
  } else {
    // A loader of OpenCL 1.2. Defaults: section 5.7.1.
    cl_bool normalized = CL_TRUE;
    cl_addressing_mode addressing = CL_ADDRESS_CLAMP;
    cl_filter_mode filter = CL_FILTER_NEAREST;
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
  return session.Add(cmd.sampler_id(), std::move(sampler));
}

}  // namespace sluice
