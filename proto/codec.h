// SPDX-License-Identifier: Apache-2.0
// Compound values: Encode fills a message from the caller's OpenCL arguments, Decode gives them
// back, checked for shape (list lengths, ranges of enumerations) but not for meaning, which the
// driver judges. A value that Decode refuses is a violation: an honest client cannot send it.
// Thread-safe: no state.
#pragma once

#include <CL/cl.h>

#include <cstddef>

#include "absl/status/statusor.h"
#include "proto/types.pb.h"

namespace sluice::wire {

namespace pb = v1;

// Work sizes of a launch. Unset parts are null for the driver.
struct NdRange {
  cl_uint work_dim = 0;
  size_t global[3] = {0, 0, 0};
  size_t local[3] = {0, 0, 0};
  size_t offset[3] = {0, 0, 0};
  bool has_local = false;
  bool has_offset = false;

  const size_t* local_or_null() const { return has_local ? local : nullptr; }
  const size_t* offset_or_null() const { return has_offset ? offset : nullptr; }
};

// `global` may be null (sizes of zero); `local` and `offset` may be null (not given). work_dim is 1
// to 3.
void EncodeNdRange(cl_uint work_dim, const size_t* global, const size_t* local,
                   const size_t* offset, pb::NdRange* out);
absl::StatusOr<NdRange> DecodeNdRange(const pb::NdRange& in);

// Three sizes, as OpenCL passes origins and regions.
struct Size3 {
  size_t v[3] = {0, 0, 0};
  operator const size_t*() const { return v; }  // NOLINT: by design, for OpenCL's parameters.
};
void EncodeSize3(const size_t* xyz, pb::Size3* out);
Size3 DecodeSize3(const pb::Size3& in);

void EncodeImageFormat(const cl_image_format& format, pb::ImageFormat* out);
cl_image_format DecodeImageFormat(const pb::ImageFormat& in);

// Without host pitches and without the parent, which travels as an id.
void EncodeImageDesc(const cl_image_desc& desc, uint64_t parent_id, pb::ImageDesc* out);
cl_image_desc DecodeImageDesc(const pb::ImageDesc& in);

}  // namespace sluice::wire
