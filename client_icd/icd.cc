// SPDX-License-Identifier: Apache-2.0
// The dispatch table, built from icd_surface.inc, and what leaves the library: the few functions
// that loaders look up.
#include <cstring>
#include <type_traits>

#include "client_icd/api.h"
#include "client_icd/object.h"
#include "client_icd/platform.h"

namespace sluice {
namespace {

// Answers for a slot without a function: CL_INVALID_OPERATION, by whichever way its type has.
template <typename Pointer>
struct Unsupported {
  static constexpr Pointer Get() { return nullptr; }  // The header gives the slot no type.
};
template <typename... Args>
struct Unsupported<cl_int(CL_API_CALL*)(Args...)> {
  static cl_int CL_API_CALL Call(Args...) noexcept { return CL_INVALID_OPERATION; }
  static constexpr auto Get() { return &Call; }
};
template <typename R, typename... Args>
requires std::is_pointer_v<R>
struct Unsupported<R(CL_API_CALL*)(Args...)> {
  static R CL_API_CALL Call(Args... args) noexcept {
    // The last argument of every creating function is errcode_ret.
    cl_int* const errcode_ret = Last(args...);
    if (errcode_ret != nullptr) *errcode_ret = CL_INVALID_OPERATION;
    return nullptr;
  }
  static constexpr auto Get() { return &Call; }

 private:
  template <typename... Before>
  static cl_int* Last(Before... before) {
    cl_int* last = nullptr;
    ((last = AsErrorCode(before)), ...);
    return last;
  }
  static cl_int* AsErrorCode(cl_int* pointer) { return pointer; }
  template <typename T>
  static cl_int* AsErrorCode(T) {
    return nullptr;
  }
};

struct NamedFunction {
  const char* name;
  void* address;
};

// Functions of extensions, which loaders and applications find by name.
void* FindExtensionFunction(const char* name) {
  static const NamedFunction functions[] = {
      {"clIcdGetPlatformIDsKHR", reinterpret_cast<void*>(&api::clGetPlatformIDs)},
      {"clCreateFromSharedResourceSLUICE",
       reinterpret_cast<void*>(&api::clCreateFromSharedResourceSLUICE)},
      {"clEnqueueAcquireSharedResourcesSLUICE",
       reinterpret_cast<void*>(&api::clEnqueueAcquireSharedResourcesSLUICE)},
      {"clEnqueueReleaseSharedResourcesSLUICE",
       reinterpret_cast<void*>(&api::clEnqueueReleaseSharedResourcesSLUICE)},
      {"clCreateProgramWithILKHR", reinterpret_cast<void*>(&api::clCreateProgramWithILKHR)},
      {"clGetKernelSubGroupInfoKHR", reinterpret_cast<void*>(&api::clGetKernelSubGroupInfoKHR)},
      {"clCreateCommandQueueWithPropertiesKHR",
       reinterpret_cast<void*>(&api::clCreateCommandQueueWithPropertiesKHR)},
      {"clEnqueueAcquireGrallocObjectsIMG",
       reinterpret_cast<void*>(&api::clEnqueueAcquireGrallocObjectsIMG)},
      {"clEnqueueReleaseGrallocObjectsIMG",
       reinterpret_cast<void*>(&api::clEnqueueReleaseGrallocObjectsIMG)},
      {"clGetKernelSuggestedLocalWorkSizeKHR",
       reinterpret_cast<void*>(&api::clGetKernelSuggestedLocalWorkSizeKHR)},
      {"clCreateFromGLBuffer", reinterpret_cast<void*>(&api::clCreateFromGLBuffer)},
      {"clCreateFromGLTexture", reinterpret_cast<void*>(&api::clCreateFromGLTexture)},
      {"clCreateFromGLTexture2D", reinterpret_cast<void*>(&api::clCreateFromGLTexture2D)},
      {"clCreateFromGLTexture3D", reinterpret_cast<void*>(&api::clCreateFromGLTexture3D)},
      {"clCreateFromGLRenderbuffer", reinterpret_cast<void*>(&api::clCreateFromGLRenderbuffer)},
      {"clGetGLObjectInfo", reinterpret_cast<void*>(&api::clGetGLObjectInfo)},
      {"clGetGLTextureInfo", reinterpret_cast<void*>(&api::clGetGLTextureInfo)},
      {"clEnqueueAcquireGLObjects", reinterpret_cast<void*>(&api::clEnqueueAcquireGLObjects)},
      {"clEnqueueReleaseGLObjects", reinterpret_cast<void*>(&api::clEnqueueReleaseGLObjects)},
      {"clGetGLContextInfoKHR", reinterpret_cast<void*>(&api::clGetGLContextInfoKHR)},
      {"clCreateEventFromGLsyncKHR", reinterpret_cast<void*>(&api::clCreateEventFromGLsyncKHR)},
      {"clCreateFromEGLImageKHR", reinterpret_cast<void*>(&api::clCreateFromEGLImageKHR)},
      {"clEnqueueAcquireEGLObjectsKHR",
       reinterpret_cast<void*>(&api::clEnqueueAcquireEGLObjectsKHR)},
      {"clEnqueueReleaseEGLObjectsKHR",
       reinterpret_cast<void*>(&api::clEnqueueReleaseEGLObjectsKHR)},
      {"clCreateEventFromEGLSyncKHR", reinterpret_cast<void*>(&api::clCreateEventFromEGLSyncKHR)},
      {"clTerminateContextKHR", reinterpret_cast<void*>(&api::clTerminateContextKHR)},
  };
  if (name == nullptr) return nullptr;
  for (const NamedFunction& function : functions) {
    if (std::strcmp(function.name, name) == 0) return function.address;
  }
  return nullptr;
}

#define ICD_ENTRY(name, kind) +1
constexpr int kSurfaceRows = 0
#include "client_icd/icd_surface.inc"
    ;
static_assert(sizeof(cl_icd_dispatch) == kSurfaceRows * sizeof(void*),
              "a slot of cl_icd_dispatch has no row");

}  // namespace

const cl_icd_dispatch kIcdDispatch = {
#define ICD_SLOT_wire(name) &api::name
#define ICD_SLOT_local(name) &api::name
#define ICD_SLOT_alias(name) &api::name
#define ICD_SLOT_unsupported(name) Unsupported<cl_api_##name>::Get()
#define ICD_ENTRY(name, kind) .name = ICD_SLOT_##kind(name),
#include "client_icd/icd_surface.inc"
#undef ICD_SLOT_wire
#undef ICD_SLOT_local
#undef ICD_SLOT_alias
#undef ICD_SLOT_unsupported
};

namespace api {

void* CL_API_CALL clGetExtensionFunctionAddress(const char* name) noexcept {
  return FindExtensionFunction(name);
}

void* CL_API_CALL clGetExtensionFunctionAddressForPlatform(cl_platform_id platform,
                                                           const char* name) noexcept {
  return Platform::From(platform) == nullptr ? nullptr : FindExtensionFunction(name);
}

}  // namespace api
}  // namespace sluice

#define SLUICE_EXPORT __attribute__((visibility("default")))

extern "C" {

SLUICE_EXPORT cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint num_entries,
                                                        cl_platform_id* platforms,
                                                        cl_uint* num_platforms) {
  return sluice::api::clGetPlatformIDs(num_entries, platforms, num_platforms);
}

SLUICE_EXPORT cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id platform,
                                                   cl_platform_info param_name,
                                                   size_t param_value_size, void* param_value,
                                                   size_t* param_value_size_ret) {
  return sluice::api::clGetPlatformInfo(platform, param_name, param_value_size, param_value,
                                        param_value_size_ret);
}

SLUICE_EXPORT void* CL_API_CALL clGetExtensionFunctionAddress(const char* name) {
  return sluice::api::clGetExtensionFunctionAddress(name);
}

SLUICE_EXPORT void* CL_API_CALL clGetExtensionFunctionAddressForPlatform(cl_platform_id platform,
                                                                         const char* name) {
  return sluice::api::clGetExtensionFunctionAddressForPlatform(platform, name);
}

}  // extern "C"
