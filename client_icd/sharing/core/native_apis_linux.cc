// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "client_icd/base/api.h"
#include "client_icd/base/uncancelled.h"
#include "client_icd/sharing/core/native_apis.h"
#include "client_icd/sharing/gl/gl_context.h"

namespace sluice::sharing {

std::span<const char* const> SharingExtensions() {
  static constexpr const char* kNames[] = {"cl_khr_gl_sharing",      "cl_khr_gl_event",
                                           "cl_khr_gl_depth_images", "cl_khr_egl_image",
                                           "cl_khr_egl_event",       "cl_img_use_gralloc_ptr"};
  return kNames;
}

bool IsInteropProperty(uint64_t name) { return IsGlProperty(name); }

cl_int OpenInterops(const PropertyList& list, const std::vector<Ref<Device>>&,
                    std::vector<Interop>* out) {
  std::shared_ptr<GlShare> gl;
  CL_RETURN_IF_ERROR(OpenGlShare(list, &gl));
  if (gl != nullptr) out->push_back({Api::kGl, std::move(gl)});
  return CL_SUCCESS;
}

std::optional<cl_int> GetInteropInfo(cl_context_info, const InfoSink&) { return std::nullopt; }

void* FindSharingFunction(const char* name) {
  if (std::strcmp(name, "clEnqueueAcquireGrallocObjectsIMG") == 0)
    return UncancelledAddress<&api::clEnqueueAcquireGrallocObjectsIMG>();
  if (std::strcmp(name, "clEnqueueReleaseGrallocObjectsIMG") == 0)
    return UncancelledAddress<&api::clEnqueueReleaseGrallocObjectsIMG>();
  return nullptr;
}

}  // namespace sluice::sharing
