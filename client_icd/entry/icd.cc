// SPDX-License-Identifier: Apache-2.0
// The dispatch table, built from icd_surface.inc, and what leaves the library: the few functions
// that loaders look up.
#include <cstring>
#include <span>
#include <type_traits>

#include "client_icd/base/api.h"
#include "client_icd/base/object.h"
#include "client_icd/base/uncancelled.h"
#include "client_icd/objects/extensions.h"
#include "client_icd/objects/platform.h"

namespace sluice::client {
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

#define ICD_SLOT_wire(name) &Uncancelled<&api::name>::Call
#define ICD_SLOT_local(name) &Uncancelled<&api::name>::Call
#define ICD_SLOT_quick(name) &api::name
#define ICD_SLOT_alias(name) &Uncancelled<&api::name>::Call
#define ICD_SLOT_unsupported(name) Unsupported<decltype(cl_icd_dispatch::name)>::Get()
// Found by name too: the functions of the APIs that this build shares with.
#define ICD_NAMED_wire(name)
#define ICD_NAMED_local(name)
#define ICD_NAMED_quick(name)
#define ICD_NAMED_alias(name)
#define ICD_NAMED_unsupported(name)
#define ICD_SLOT_gl(name) &Uncancelled<&api::name>::Call
#define ICD_NAMED_gl(name) {#name, UncancelledAddress<&api::name>()},
#ifdef SLUICE_SHARES_DIRECT3D
#define ICD_SLOT_egl(name) ICD_SLOT_unsupported(name)
#define ICD_SLOT_direct3d(name) ICD_SLOT_gl(name)
#define ICD_NAMED_egl(name)
#define ICD_NAMED_direct3d(name) ICD_NAMED_gl(name)
#else
#define ICD_SLOT_egl(name) ICD_SLOT_gl(name)
#define ICD_SLOT_direct3d(name) ICD_SLOT_unsupported(name)
#define ICD_NAMED_egl(name) ICD_NAMED_gl(name)
#define ICD_NAMED_direct3d(name)
#endif

struct NamedFunction {
  const char* name;
  void* address;
};

void* FindIn(std::span<const NamedFunction> functions, const char* name) {
  for (const NamedFunction& function : functions) {
    if (std::strcmp(function.name, name) == 0) return function.address;
  }
  return nullptr;
}

// Of cl_sluice_shared_resource.
void* FindResourceFunction(const char* name) {
  static const NamedFunction functions[] = {
      {"clCreateFromSharedResourceSLUICE",
       UncancelledAddress<&api::clCreateFromSharedResourceSLUICE>()},
      {"clEnqueueAcquireSharedResourcesSLUICE",
       UncancelledAddress<&api::clEnqueueAcquireSharedResourcesSLUICE>()},
      {"clEnqueueReleaseSharedResourcesSLUICE",
       UncancelledAddress<&api::clEnqueueReleaseSharedResourcesSLUICE>()},
  };
  return FindIn(functions, name);
}

// Functions of other extensions, which loaders and applications find by name.
void* FindExtensionFunction(const char* name) {
  static const NamedFunction functions[] = {
      {"clIcdGetPlatformIDsKHR", UncancelledAddress<&api::clGetPlatformIDs>()},
      {"clCreateProgramWithILKHR", UncancelledAddress<&api::clCreateProgramWithILKHR>()},
      {"clGetKernelSubGroupInfoKHR", UncancelledAddress<&api::clGetKernelSubGroupInfoKHR>()},
      {"clCreateCommandQueueWithPropertiesKHR",
       UncancelledAddress<&api::clCreateCommandQueueWithPropertiesKHR>()},
      {"clGetKernelSuggestedLocalWorkSizeKHR",
       UncancelledAddress<&api::clGetKernelSuggestedLocalWorkSizeKHR>()},
      {"clTerminateContextKHR", UncancelledAddress<&api::clTerminateContextKHR>()},
#define ICD_ENTRY(name, kind) ICD_NAMED_##kind(name)
#include "client_icd/base/icd_surface.inc"
  };
  if (void* const found = FindIn(functions, name)) return found;
  for (const InteropExtension* one : InteropExtensions()) {
    if (one->find_function == nullptr) continue;
    if (void* const found = one->find_function(name)) return found;
  }
  return nullptr;
}

#define ICD_ENTRY(name, kind) +1
constexpr int kSurfaceRows = 0
#include "client_icd/base/icd_surface.inc"
    ;
static_assert(sizeof(cl_icd_dispatch) == kSurfaceRows * sizeof(void*),
              "a slot of cl_icd_dispatch has no row");

}  // namespace

const cl_icd_dispatch kIcdDispatch = {
#define ICD_ENTRY(name, kind) .name = ICD_SLOT_##kind(name),
#include "client_icd/base/icd_surface.inc"
};

namespace api {

// Section 9.2: an address "does not guarantee that an extension function is actually supported by
// the platform", which is what its extensions' names are for. So all that there is are found,
// whatever the devices offer; of one platform, not those that it could only refuse.
void* CL_API_CALL clGetExtensionFunctionAddress(const char* name) noexcept {
  if (name == nullptr) return nullptr;
  void* const found = FindResourceFunction(name);
  return found != nullptr ? found : FindExtensionFunction(name);
}

void* CL_API_CALL clGetExtensionFunctionAddressForPlatform(cl_platform_id handle,
                                                           const char* name) noexcept {
  const Platform* platform = Platform::From(handle);
  if (platform == nullptr || name == nullptr) return nullptr;
  return platform->shares_resources() ? api::clGetExtensionFunctionAddress(name)
                                      : FindExtensionFunction(name);
}

}  // namespace api
}  // namespace sluice::client

#define SLUICE_EXPORT __attribute__((visibility("default")))

extern "C" {

SLUICE_EXPORT cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint num_entries,
                                                        cl_platform_id* platforms,
                                                        cl_uint* num_platforms) {
  return sluice::client::kIcdDispatch.clGetPlatformIDs(num_entries, platforms, num_platforms);
}

SLUICE_EXPORT cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id platform,
                                                   cl_platform_info param_name,
                                                   size_t param_value_size, void* param_value,
                                                   size_t* param_value_size_ret) {
  return sluice::client::kIcdDispatch.clGetPlatformInfo(platform, param_name, param_value_size,
                                                        param_value, param_value_size_ret);
}

SLUICE_EXPORT void* CL_API_CALL clGetExtensionFunctionAddress(const char* name) {
  return sluice::client::api::clGetExtensionFunctionAddress(name);
}

SLUICE_EXPORT void* CL_API_CALL clGetExtensionFunctionAddressForPlatform(cl_platform_id platform,
                                                                         const char* name) {
  return sluice::client::api::clGetExtensionFunctionAddressForPlatform(platform, name);
}

}  // extern "C"
