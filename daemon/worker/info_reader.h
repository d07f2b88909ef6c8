// SPDX-License-Identifier: Apache-2.0
// Reads values from the driver's clGet*Info in the form that travels: a parameter, the driver's
// status, the bytes. Thread-safe: no state.
#pragma once

#include <CL/cl.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "google/protobuf/repeated_ptr_field.h"
#include "proto/command.pb.h"

namespace sluice::worker {

namespace pb = v1;

// Calls get(size, value, &size_ret): for the value at once where it is short (Wine's OpenCL.dll
// faults when it is asked for the size of some alone), else for its size and then for the value.
template <typename Get>
cl_int ReadInfo(Get&& get, std::string* value) {
  char brief[64];
  size_t size = 0;
  cl_int status = get(sizeof(brief), brief, &size);
  if (status == CL_SUCCESS && size <= sizeof(brief)) {
    value->assign(brief, size);
    return status;
  }
  status = get(0, nullptr, &size);
  if (status != CL_SUCCESS) return status;
  value->assign(size, '\0');
  if (size != 0) status = get(size, value->data(), nullptr);
  return status;
}

// Every query of a device or platform that this driver answers, apart from handles and counts,
// which the client knows. Extensions and capabilities are narrowed to those that Sluice forwards,
// and sizes of memory to `memory_limit` bytes, which a session may have (0: as many as there are).
void ReadDeviceInfo(cl_device_id device, uint64_t memory_limit,
                    google::protobuf::RepeatedPtrField<pb::InfoValue>* out);
void ReadPlatformInfo(cl_platform_id platform,
                      google::protobuf::RepeatedPtrField<pb::InfoValue>* out);

// clGetSupportedImageFormats, and its code: cl_image_format, one after the other.
cl_int ReadImageFormats(cl_context context, cl_mem_flags flags, cl_mem_object_type type,
                        std::string* formats);

// A space separated list of extensions, without those whose functions Sluice does not implement,
// and with those that the worker gives by itself.
std::string ForwardedExtensions(const std::string& extensions);

}  // namespace sluice::worker
