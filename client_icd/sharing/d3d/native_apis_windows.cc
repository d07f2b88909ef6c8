// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "client_icd/base/api.h"
#include "client_icd/base/uncancelled.h"
#include "client_icd/sharing/core/native_apis.h"
#include "client_icd/sharing/d3d/d3d_share.h"
#include "client_icd/sharing/d3d/dx9_share.h"
#include "client_icd/sharing/gl/gl_context.h"

namespace sluice::sharing {
namespace {

#define DXGI_ROW(name, value, order, type) static_assert(DXGI_FORMAT_##name == value);
#include "proto/dxgi_formats.inc"

struct Alias {
  const char* name;
  void* address;
};

// cl_nv_d3d11_sharing: the same functions by other names, and tokens of the same values.
const Alias kAliases[] = {
    {"clGetDeviceIDsFromD3D11NV", UncancelledAddress<&api::clGetDeviceIDsFromD3D11KHR>()},
    {"clCreateFromD3D11BufferNV", UncancelledAddress<&api::clCreateFromD3D11BufferKHR>()},
    {"clCreateFromD3D11Texture2DNV", UncancelledAddress<&api::clCreateFromD3D11Texture2DKHR>()},
    {"clCreateFromD3D11Texture3DNV", UncancelledAddress<&api::clCreateFromD3D11Texture3DKHR>()},
    {"clEnqueueAcquireD3D11ObjectsNV", UncancelledAddress<&api::clEnqueueAcquireD3D11ObjectsKHR>()},
    {"clEnqueueReleaseD3D11ObjectsNV", UncancelledAddress<&api::clEnqueueReleaseD3D11ObjectsKHR>()},
};

// The device that the list names for Direct3D 10 or 11, if it names one.
template <typename T>
cl_int OpenDevice(const PropertyList& list, bool user_sync, std::vector<Interop>* out) {
  const uint64_t* value = list.Find(static_cast<uint64_t>(T::kTokens.device_property));
  if (value == nullptr || *value == 0) return CL_SUCCESS;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the list carries pointers as numbers.
  return D3dShare<T>::Open(reinterpret_cast<IUnknown*>(*value), user_sync, out);
}

}  // namespace

std::span<const char* const> SharingExtensions() {
  static constexpr const char* kNames[] = {"cl_khr_gl_sharing",       "cl_khr_gl_event",
                                           "cl_khr_gl_depth_images",  "cl_khr_d3d10_sharing",
                                           "cl_khr_d3d11_sharing",    "cl_nv_d3d11_sharing",
                                           "cl_khr_dx9_media_sharing"};
  return kNames;
}

bool IsInteropProperty(uint64_t name) {
  return name == CL_CONTEXT_D3D10_DEVICE_KHR || name == CL_CONTEXT_D3D11_DEVICE_KHR ||
         Dx9Share::IsProperty(name) || IsGlProperty(name);
}

cl_int OpenInterops(const PropertyList& list, const std::vector<Ref<Device>>&,
                    std::vector<Interop>* out) {
  std::shared_ptr<GlShare> gl;
  CL_RETURN_IF_ERROR(OpenGlShare(list, &gl));
  if (gl != nullptr) out->push_back({Api::kGl, std::move(gl)});
  const uint64_t* value = list.Find(CL_CONTEXT_INTEROP_USER_SYNC);
  const bool user_sync = value != nullptr && *value == CL_TRUE;
  CL_RETURN_IF_ERROR(OpenDevice<Direct3d10>(list, user_sync, out));
  CL_RETURN_IF_ERROR(OpenDevice<Direct3d11>(list, user_sync, out));
  CL_RETURN_IF_ERROR(Dx9Share::Open(list, user_sync, out));
  // Sections 9.6.5 and 9.8.5: CL_INVALID_OPERATION if "interoperability with another graphics API
  // is also specified".
  return out->size() > 1 ? CL_INVALID_OPERATION : CL_SUCCESS;
}

// What the query is about, D3D1x_RESOURCE_MISC_SHARED alone, gives a resource a global handle only,
// which is not imported: it goes as any other.
std::optional<cl_int> GetInteropInfo(cl_context_info param_name, const InfoSink& sink) {
  if (param_name != Direct3d10::kTokens.prefer_shared &&
      param_name != Direct3d11::kTokens.prefer_shared)
    return std::nullopt;
  return sink.Value<cl_bool>(CL_FALSE);
}

void* FindSharingFunction(const char* name) {
  const auto* found =
      std::find_if(std::begin(kAliases), std::end(kAliases),
                   [name](const Alias& a) { return std::strcmp(a.name, name) == 0; });
  return found == std::end(kAliases) ? nullptr : found->address;
}

}  // namespace sluice::sharing
