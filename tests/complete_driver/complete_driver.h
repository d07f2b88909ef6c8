// SPDX-License-Identifier: Apache-2.0
//
// An OpenCL driver that has what PoCL 3.1 lacks: pipes, SPIR-V programs with specialisation
// constants, sub-groups, a host timer, queues on the device, 2D images from buffers and images,
// CL_RG images, memory that is cleared. It is PoCL with some functions of its dispatch table
// replaced; the rest, and all that computes, stays PoCL's. These features do as little as lets a
// program see whether its values have arrived. Packets go through memory of this process, a SPIR-V
// module is one that stores its constants, and a kernel enqueued by a kernel runs in its place.
// Owner: the process that loads it, for good. Thread-safe, as OpenCL is: what is noted of objects
// is under one mutex. Trust: a test's.
#pragma once

#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_icd.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

namespace sluice::complete_driver {

// PoCL's own table, as it was.
const cl_icd_dispatch& Pocl();

// Hands out a query's answer, by the rules of section 4.1: too small a buffer is CL_INVALID_VALUE.
inline cl_int Give(const void* value, size_t bytes, size_t room, void* out, size_t* bytes_out) {
  if (out != nullptr && room < bytes) return CL_INVALID_VALUE;
  if (out != nullptr) std::memcpy(out, value, bytes);
  if (bytes_out != nullptr) *bytes_out = bytes;
  return CL_SUCCESS;
}
template <typename T>
cl_int GiveValue(const T& value, size_t room, void* out, size_t* bytes_out) {
  return Give(&value, sizeof(value), room, out, bytes_out);
}
inline cl_int GiveText(const std::string& text, size_t room, void* out, size_t* bytes_out) {
  return Give(text.c_str(), text.size() + 1, room, out, bytes_out);
}

inline void* Refuse(cl_int code, cl_int* error) {
  if (error != nullptr) *error = code;
  return nullptr;
}

// Puts the functions of a file in their places.
void ReplaceInfoFunctions(cl_icd_dispatch* table);
void ReplaceImageFunctions(cl_icd_dispatch* table);
void ReplaceObjectFunctions(cl_icd_dispatch* table);
void ReplaceProgramFunctions(cl_icd_dispatch* table);
void ReplaceKernelFunctions(cl_icd_dispatch* table);
void ReplaceWhatLosesDevices(cl_icd_dispatch* table);  // The last.

// The value of 64 bits that kernels are told of an object; 0 if it is none.
cl_ulong AddressOfPipe(cl_mem memory);
cl_ulong SizeOfDeviceQueue(cl_command_queue queue);

// An argument that OpenCL C as PoCL compiles it does not know.
struct Arg {
  enum class Kind { kPlain, kPipe, kQueue };
  Kind kind = Kind::kPlain;
  std::string type;  // Of a pipe's packets.
  bool is_read = false;
};
Arg ArgOf(cl_kernel kernel, cl_uint index);

// A kernel that stores the values of its specialisation constants, in the order of their ids, to
// what its one argument points to.
struct Module {
  struct Constant {
    cl_uint id = 0;
    size_t bytes = 0;  // 1 for a bool too (section 5.8.2).
    cl_ulong value = 0;
  };
  std::string kernel;
  size_t element_bytes = 0;
  std::vector<Constant> constants;
};
// False if it is no SPIR-V.
bool ReadSpirv(const void* code, size_t bytes, Module* out);
std::string SourceOf(const Module& module);
// As options of the build.
std::string ConstantsOf(const Module& module);

inline constexpr cl_uint kMaxPacketBytes = 1024;
inline constexpr cl_uint kMaxQueueBytes = 64 << 10;
inline constexpr cl_uint kPreferredQueueBytes = 16 << 10;
inline constexpr size_t kSubGroup = 8;
// Of the rows of a buffer that a 2D image is made from.
inline constexpr cl_uint kPitchPixels = 16;
inline constexpr cl_uint kAddressPixels = 4;

}  // namespace sluice::complete_driver
