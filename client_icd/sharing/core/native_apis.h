// SPDX-License-Identifier: Apache-2.0
// Which graphics APIs this build of the driver shares with: what they add to contexts, to the
// extensions and to the functions found by name. CMake builds one implementation, by operating
// system: native_apis_linux.cc (GL by EGL and GLX, EGL, gralloc) or
// d3d/native_apis_windows.cc (GL by WGL, Direct3D).
// Thread-safe: no state.
#pragma once

#include <CL/cl.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "client_icd/base/object.h"
#include "client_icd/objects/args.h"
#include "client_icd/objects/device.h"
#include "client_icd/objects/info.h"
#include "client_icd/sharing/core/api_rules.h"

namespace sluice::sharing {

// The sharing extensions, of the platform and of every device that has what they need
// (extensions.cc).
std::span<const char* const> SharingExtensions();

// A property name of clCreateContext that one of the APIs adds.
bool IsInteropProperty(uint64_t name);

// What an API's adapter keeps for a context that was created for it (Context::AddInterop).
struct Interop {
  Api api;
  std::shared_ptr<void> kept;
};
// Of each API that the list names. The code is the API's own, or CL_INVALID_OPERATION for several
// APIs in one context.
cl_int OpenInterops(const PropertyList& list, const std::vector<Ref<Device>>& devices,
                    std::vector<Interop>* out);

// Answers a name of clGetContextInfo that one of the APIs adds; nothing for other names.
std::optional<cl_int> GetInteropInfo(cl_context_info param_name, const InfoSink& sink);

// The address of a function of one of the APIs that has no slot in the dispatch table; null for
// other names.
void* FindSharingFunction(const char* name);

}  // namespace sluice::sharing
