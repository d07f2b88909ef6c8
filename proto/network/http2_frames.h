// SPDX-License-Identifier: Apache-2.0
//
// The headers of HTTP/2's frames (RFC 9113, sections 4.1 and 6), for those who count a peer's frames
// before gRPC sees them. A frame's contents are skipped, and whether they are right is gRPC's
// business.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::wire {

namespace http2 {
inline constexpr uint8_t kData = 0;
inline constexpr uint8_t kHeaders = 1;
inline constexpr uint8_t kResetStream = 3;
inline constexpr uint8_t kSettings = 4;
inline constexpr uint8_t kPing = 6;
inline constexpr uint8_t kContinuation = 9;
// Flags.
inline constexpr uint8_t kAck = 1;
inline constexpr uint8_t kEndStream = 1;
inline constexpr uint8_t kEndHeaders = 4;
}  // namespace http2

// Cuts bytes into frames. Thread-compatible.
class FrameCutter {
 public:
  // Before the first frame of a client's bytes (RFC 9113, 3.4).
  static constexpr uint32_t kPrefaceBytes = 24;
  static constexpr size_t kHeaderBytes = 9;
  struct Header {
    uint8_t type = 0;
    uint8_t flags = 0;
    uint32_t stream = 0;
    uint32_t size = 0;
  };

  // Skips so many bytes first.
  explicit FrameCutter(uint32_t skip = 0) : skip_(skip) {}

  // Calls on_frame for each header, until it says false or there are no more bytes; how many bytes
  // were looked at.
  template <typename OnFrame>
  size_t Take(const std::string_view all, OnFrame&& on_frame) {
    std::string_view bytes = all;
    while (!bytes.empty()) {
      if (skip_ > 0) {
        const size_t skipped = skip_ < bytes.size() ? skip_ : bytes.size();
        skip_ -= static_cast<uint32_t>(skipped);
        bytes.remove_prefix(skipped);
        continue;
      }
      header_[header_size_++] = static_cast<uint8_t>(bytes.front());
      bytes.remove_prefix(1);
      if (header_size_ < kHeaderBytes) continue;
      header_size_ = 0;
      Header header;
      header.size = uint32_t{header_[0]} << 16 | uint32_t{header_[1]} << 8 | header_[2];
      header.type = header_[3];
      header.flags = header_[4];
      header.stream = (uint32_t{header_[5]} << 24 | uint32_t{header_[6]} << 16 |
                       uint32_t{header_[7]} << 8 | header_[8]) &
                      0x7fffffff;
      skip_ = header.size;
      if (!on_frame(header)) break;
    }
    return all.size() - bytes.size();
  }

 private:
  uint32_t skip_;  // Until the next header.
  std::array<uint8_t, kHeaderBytes> header_ = {};
  size_t header_size_ = 0;  // As much of it as is there.
};

}  // namespace sluice::wire
