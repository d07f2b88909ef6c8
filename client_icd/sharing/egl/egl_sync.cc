// SPDX-License-Identifier: Apache-2.0
#include "client_icd/sharing/egl/egl_sync.h"

#include <algorithm>

#include "client_icd/base/client_log.h"
#include "client_icd/sharing/egl/egl_api.h"
#include "client_icd/sharing/gl/gl_api.h"

namespace sluice::client::sharing {
namespace {

// The extension's functions; null if the display has not got it, or is none.
template <typename Function>
Function Find(const EglApi& egl, void* display, const char* name,
              const char* extension = "EGL_KHR_fence_sync") {
  if (!HasWord(egl.QueryString(display, EGL_EXTENSIONS), extension)) return nullptr;
  return reinterpret_cast<Function>(egl.GetProcAddress(name));
}

}  // namespace

bool IsEglFence(void* display, void* sync) {
  const absl::StatusOr<EglApi> egl = EglApi::Find();
  if (!egl.ok() || display == EGL_NO_DISPLAY || sync == EGL_NO_SYNC_KHR) return false;
  const auto get = Find<PFNEGLGETSYNCATTRIBKHRPROC>(*egl, display, "eglGetSyncAttribKHR");
  EGLint type = 0;
  return get != nullptr && get(display, sync, EGL_SYNC_TYPE_KHR, &type) == EGL_TRUE &&
         type == EGL_SYNC_FENCE_KHR;
}

bool FollowEglFence(void* display, void* sync) {
  const absl::StatusOr<EglApi> egl = EglApi::Find();
  if (!egl.ok() || egl->GetCurrentDisplay() != display) return false;
  const auto wait =
      Find<PFNEGLWAITSYNCKHRPROC>(*egl, display, "eglWaitSyncKHR", "EGL_KHR_wait_sync");
  return wait != nullptr && wait(display, sync, 0) == EGL_TRUE;
}

cl_int WaitForEglFence(void* display, void* sync, absl::Time deadline) {
  const absl::StatusOr<EglApi> egl = EglApi::Find();
  if (!egl.ok()) return CL_OUT_OF_RESOURCES;
  const auto wait = Find<PFNEGLCLIENTWAITSYNCKHRPROC>(*egl, display, "eglClientWaitSyncKHR");
  if (wait == nullptr) return CL_OUT_OF_RESOURCES;
  const int64_t left = std::max<int64_t>(absl::ToInt64Nanoseconds(deadline - absl::Now()), 0);
  const EGLint result = wait(display, sync, 0, static_cast<EGLTimeKHR>(left));
  if (result == EGL_CONDITION_SATISFIED_KHR) return CL_SUCCESS;
  ClientLog(ClientLogLevel::kWarning, result == EGL_TIMEOUT_EXPIRED_KHR
                                          ? "an EGL fence was not signalled in time"
                                          : "an EGL fence cannot be waited for");
  return CL_OUT_OF_RESOURCES;
}

}  // namespace sluice::client::sharing
