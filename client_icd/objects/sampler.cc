// SPDX-License-Identifier: Apache-2.0
#include "client_icd/objects/sampler.h"

#include "absl/strings/str_cat.h"
#include "client_icd/base/api.h"

namespace sluice::client {

Sampler::Sampler(Ref<Context> context, PropertyList properties, bool normalized,
                 cl_addressing_mode addressing, cl_filter_mode filter)
    : ClObject(context->session().NextId()),
      context_(std::move(context)),
      properties_(std::move(properties)),
      normalized_(normalized),
      addressing_(addressing),
      filter_(filter) {}

Sampler::~Sampler() {
  if (made_) session().ReleaseObject(id());
}

cl_int Sampler::GetInfo(cl_sampler_info param_name, const InfoSink& sink) {
  switch (param_name) {
    case CL_SAMPLER_REFERENCE_COUNT:
      return sink.Value<cl_uint>(app_count());
    case CL_SAMPLER_CONTEXT:
      return sink.Value<cl_context>(context_->handle());
    case CL_SAMPLER_NORMALIZED_COORDS:
      return sink.Value<cl_bool>(normalized_ ? CL_TRUE : CL_FALSE);
    case CL_SAMPLER_ADDRESSING_MODE:
      return sink.Value<cl_addressing_mode>(addressing_);
    case CL_SAMPLER_FILTER_MODE:
      return sink.Value<cl_filter_mode>(filter_);
    case CL_SAMPLER_PROPERTIES:
      return sink.Array(properties_.WithTerminator());
    default:
      return WireInfo(session(), {pb::GetInfo::SAMPLER, id(), param_name}, sink);
  }
}

namespace {

// Reads what the list says, or the defaults of section 5.7.1. CL_INVALID_VALUE for a name that is
// not known, is there twice, or has a value that is none of its own.
cl_int ReadSampler(const PropertyList& list, bool* normalized, cl_addressing_mode* addressing,
                   cl_filter_mode* filter) {
  *normalized = true;
  *addressing = CL_ADDRESS_CLAMP;
  *filter = CL_FILTER_NEAREST;
  if (list.HasDuplicates()) return CL_INVALID_VALUE;
  for (size_t i = 0; i + 1 < list.words.size(); i += 2) {
    const uint64_t value = list.words[i + 1];
    switch (list.words[i]) {
      case CL_SAMPLER_NORMALIZED_COORDS:
        if (value != CL_TRUE && value != CL_FALSE) return CL_INVALID_VALUE;
        *normalized = value == CL_TRUE;
        break;
      case CL_SAMPLER_ADDRESSING_MODE:
        if (value < CL_ADDRESS_NONE || value > CL_ADDRESS_MIRRORED_REPEAT) return CL_INVALID_VALUE;
        *addressing = static_cast<cl_addressing_mode>(value);
        break;
      case CL_SAMPLER_FILTER_MODE:
        if (value != CL_FILTER_NEAREST && value != CL_FILTER_LINEAR) return CL_INVALID_VALUE;
        *filter = static_cast<cl_filter_mode>(value);
        break;
      default:
        return CL_INVALID_VALUE;
    }
  }
  return CL_SUCCESS;
}

cl_sampler CreateSampler(cl_context context_handle, const PropertyList& given,
                         const PropertyList& wire, cl_int* errcode_ret) {
  Context* context = Context::From(context_handle);
  if (context == nullptr) return Fail(errcode_ret, CL_INVALID_CONTEXT);
  bool normalized = false;
  cl_addressing_mode addressing = 0;
  cl_filter_mode filter = 0;
  cl_int status = ReadSampler(wire, &normalized, &addressing, &filter);
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  // Section 5.7.1: CL_INVALID_OPERATION if images are not supported by any device associated with
  // context.
  if (!context->supports_images()) return Fail(errcode_ret, CL_INVALID_OPERATION);
  auto sampler = Ref<Sampler>::Adopt(
      new Sampler(Ref<Context>(context), given, normalized, addressing, filter));
  ScopedCommand command;
  pb::CreateSampler& body = *command->mutable_create_sampler();
  body.set_sampler_id(sampler->id());
  body.set_context_id(context->id());
  wire.CopyTo(body.mutable_properties());
  Creation creation;
  creation.kind = absl::StrCat("sampler ", normalized, " ", addressing, " ", filter);
  status = context->Create(*command, {}, creation);
  if (status != CL_SUCCESS) return Fail(errcode_ret, status);
  sampler->SetMade();
  Succeed(errcode_ret);
  return sampler.Detach()->handle();
}

}  // namespace

namespace api {

cl_sampler CL_API_CALL
clCreateSamplerWithProperties(cl_context context, const cl_sampler_properties* sampler_properties,
                              cl_int* errcode_ret) noexcept {
  PropertyList list;
  if (!ReadProperties(sampler_properties, &list)) {
    return Fail(errcode_ret,
                Context::From(context) == nullptr ? CL_INVALID_CONTEXT : CL_INVALID_VALUE);
  }
  return CreateSampler(context, list, list, errcode_ret);
}

cl_sampler CL_API_CALL clCreateSampler(cl_context context, cl_bool normalized_coords,
                                       cl_addressing_mode addressing_mode,
                                       cl_filter_mode filter_mode, cl_int* errcode_ret) noexcept {
  PropertyList wire;
  wire.given = true;
  wire.words = {CL_SAMPLER_NORMALIZED_COORDS, normalized_coords,
                CL_SAMPLER_ADDRESSING_MODE,   addressing_mode,
                CL_SAMPLER_FILTER_MODE,       filter_mode};
  // Section 5.7.3: CL_SAMPLER_PROPERTIES of a sampler made without a list is empty.
  return CreateSampler(context, PropertyList(), wire, errcode_ret);
}

cl_int CL_API_CALL clRetainSampler(cl_sampler sampler) noexcept {
  return RetainHandle<Sampler>(sampler, CL_INVALID_SAMPLER);
}

cl_int CL_API_CALL clReleaseSampler(cl_sampler sampler) noexcept {
  return ReleaseHandle<Sampler>(sampler, CL_INVALID_SAMPLER);
}

cl_int CL_API_CALL clGetSamplerInfo(cl_sampler sampler_handle, cl_sampler_info param_name,
                                    size_t param_value_size, void* param_value,
                                    size_t* param_value_size_ret) noexcept {
  Sampler* sampler = Sampler::From(sampler_handle);
  if (sampler == nullptr) return CL_INVALID_SAMPLER;
  return sampler->GetInfo(param_name,
                          InfoSink(param_value_size, param_value, param_value_size_ret));
}

}  // namespace api
}  // namespace sluice::client
