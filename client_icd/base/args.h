// SPDX-License-Identifier: Apache-2.0
// Reads the caller's pointers. It checks only that they may be read: null against count, lists that
// end. Each object's file, or the driver, checks the values. Thread-safe: no state.
#pragma once

#include <CL/cl.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "google/protobuf/repeated_field.h"

// Leaves an entry point, or a helper of one, with an error code.
#define CL_RETURN_IF_ERROR(expression)                                      \
  do {                                                                      \
    if (const cl_int cl_status_ = (expression); cl_status_ != CL_SUCCESS) { \
      return cl_status_;                                                    \
    }                                                                       \
  } while (false)

namespace sluice::client {

using Uint64List = google::protobuf::RepeatedField<uint64_t>;

// For creating calls: stores the code where the application wants it, and returns the null handle.
inline std::nullptr_t Fail(cl_int* errcode_ret, cl_int status) {
  if (errcode_ret != nullptr) *errcode_ret = status;
  return nullptr;
}
inline void Succeed(cl_int* errcode_ret) {
  if (errcode_ret != nullptr) *errcode_ret = CL_SUCCESS;
}

// A zero-terminated list of (name, value) pairs, without its terminator; empty for null. At most 64
// pairs are read.
struct PropertyList {
  std::vector<uint64_t> words;  // name, value, name, value, ...
  bool given = false;           // The application passed a list, if only an empty one.

  const uint64_t* Find(uint64_t name) const;  // Its value; null if it is not there.
  bool HasDuplicates() const;
  void CopyTo(Uint64List* out) const { out->Add(words.begin(), words.end()); }
  // As the application gave it, terminator included, for CL_*_PROPERTIES queries; empty if it gave
  // none.
  std::vector<uint64_t> WithTerminator() const;
};
// False if the list does not end.
bool ReadProperties(const uint64_t* properties, PropertyList* out);
inline bool ReadProperties(const cl_context_properties* properties, PropertyList* out) {
  return ReadProperties(reinterpret_cast<const uint64_t*>(properties), out);
}

// work_dim 1 to 3, else CL_INVALID_WORK_DIMENSION.
cl_int CheckWorkDim(cl_uint work_dim);

// True if a * b does not wrap; the result is in *out.
inline bool CheckedMultiply(uint64_t a, uint64_t b, uint64_t* out) {
  return !__builtin_mul_overflow(a, b, out);
}

}  // namespace sluice::client
