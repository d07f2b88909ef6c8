// SPDX-License-Identifier: Apache-2.0
// The extensions that this driver gives by itself: they are shown in front of those that the worker
// passes on from the real platform and its devices. Those by which another API's objects become
// OpenCL's are rows of a table, one per API, which is the system's
// (client_icd/sharing/interop_linux.cc, interop_windows.cc). Contexts, images, buffers and the
// functions found by name ask the rows, and name no API. Thread-safe: no state.
#pragma once

#include <CL/cl.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client_icd/base/args.h"
#include "client_icd/base/object.h"
#include "client_icd/session/info.h"

namespace sluice::client {

class Context;
class Device;

namespace sharing {
enum class Api;
}  // namespace sharing

// The state that an API's adapter keeps for a context that was created for it
// (Context::AddInterop).
struct Interop {
  sharing::Api api;
  std::shared_ptr<void> kept;
};

// All that one API adds. A null function adds nothing.
struct InteropExtension {
  struct Name {
    const char* name;
    const char* needs = nullptr;  // An extension of the device's that it takes; null for none.
  };
  std::span<const Name> names = {};

  // A property name of clCreateContext.
  bool (*has_context_property)(uint64_t name) = nullptr;
  // Opens the API's context or device that the list names; adds nothing if it names none. The code
  // is the API's own.
  cl_int (*open)(const PropertyList& list, std::vector<Interop>* out) = nullptr;
  // Answers a name of clGetContextInfo; nothing for other names.
  std::optional<cl_int> (*context_info)(cl_context_info param_name, const InfoSink& sink) = nullptr;
  // Adds to the supported image formats of a context.
  void (*add_image_formats)(const Context& context,
                            std::vector<cl_image_format>* formats) = nullptr;
  // clCreateBuffer with one of these flags.
  cl_mem_flags buffer_flags = 0;
  cl_mem (*create_buffer)(Context* context, const PropertyList& properties, cl_mem_flags flags,
                          size_t size, void* host_ptr, cl_int* errcode_ret) = nullptr;
  // The address of a function that has no slot in the dispatch table; null for other names.
  void* (*find_function)(const char* name) = nullptr;
};

std::span<const InteropExtension* const> InteropExtensions();

bool IsInteropName(std::string_view extension);
bool IsInteropProperty(uint64_t name);
// Of each API that the list names. CL_INVALID_OPERATION for several APIs in one context (sections
// 9.6.5 and 9.8.5: "if interoperability with another graphics API is also specified").
cl_int OpenInterops(const PropertyList& list, std::vector<Interop>* out);
std::optional<cl_int> GetInteropInfo(cl_context_info param_name, const InfoSink& sink);

// The platform's own: cl_khr_icd, and the sharing extensions. `shares_resources`: Platform's.
// `passed_on`: the words of the worker's list, from which some follow.
std::vector<const char*> OwnPlatformExtensions(bool shares_resources, std::string_view passed_on);
// Every device's own: the sharing extensions.
std::vector<const char*> OwnDeviceExtensions(bool shares_resources, std::string_view passed_on);

// `list` with the names that it lacks in front of it.
std::string WithExtensions(const std::vector<const char*>& names, std::string_view list);
// The same for the array that CL_*_EXTENSIONS_WITH_VERSION gives; the names have version 1.0.0.
std::vector<cl_name_version> WithExtensionVersions(const std::vector<const char*>& names,
                                                   std::string_view array);

// True if one of the words of `list`, which has blanks between.
bool HasExtensionWord(std::string_view list, std::string_view word);

}  // namespace sluice::client
