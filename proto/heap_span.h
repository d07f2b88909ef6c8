// SPDX-License-Identifier: Apache-2.0
// The only place where an offset and a size become a pointer. Both come from the peer.
#pragma once

#include <cstdint>

namespace sluice::wire {

// True if [offset, offset + size) lies within `limit` bytes; no sum can wrap.
inline constexpr bool SpanFits(uint64_t offset, uint64_t size, uint64_t limit) {
  return offset <= limit && size <= limit - offset;
}

// The span's first byte in a mapping of `mapping_bytes`, or null if it does not fit.
inline uint8_t* SpanPointer(uint8_t* mapping, uint64_t mapping_bytes, uint64_t offset_untrusted,
                            uint64_t size_untrusted) {
  if (mapping == nullptr || !SpanFits(offset_untrusted, size_untrusted, mapping_bytes))
    return nullptr;
  return mapping + offset_untrusted;
}

}  // namespace sluice::wire
