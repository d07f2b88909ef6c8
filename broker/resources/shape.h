// SPDX-License-Identifier: Apache-2.0
//
// The shape of a daemon-owned resource: a buffer of some bytes, or an image of a format, an extent
// and one to three planes; and how many bytes that takes. The daemon never touches the bytes. Its
// clients do, and rely on the shape, so it is complete, consistent and free of overflow before it
// is kept.
//
// Plain data, owned by whoever holds it. A client's values are not trusted: every shape passes
// through CompleteShape. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"

namespace sluice::broker {

// In bytes from the start of the memory.
struct PlaneLayout {
  uint64_t offset = 0;
  uint64_t row_pitch = 0;
  uint64_t slice_pitch = 0;
};

struct ResourceImage {
  uint32_t channel_order = 0;  // OpenCL's numbers; 0 where OpenCL has no name for the fourcc.
  uint32_t channel_type = 0;
  uint32_t drm_fourcc = 0;  // 0 where DRM has no name for the OpenCL format.
  uint64_t width = 0;
  uint64_t height = 0;
  uint64_t depth = 1;
  uint64_t array_layers = 1;
  std::vector<PlaneLayout> planes;
};

struct ResourceShape {
  uint64_t size_bytes = 0;
  std::optional<ResourceImage> image;
};

inline constexpr uint64_t kMaxImageExtent = 65'536;
inline constexpr uint64_t kMaxResourceBytes = uint64_t{1} << 46;

// Fills in fields that were left 0 (tight layouts, the size, the other name of the format). An
// error says in words what does not fit together; then do not use `shape`.
absl::Status CompleteShape(ResourceShape* shape_untrusted);

}  // namespace sluice::broker
