// SPDX-License-Identifier: Apache-2.0
//
// The messages of daemon-owned resources, in the form of broker_messages.h: how a client gets its
// connection to `Resources` (proto/resources.proto), what travels on that connection's handle
// channel, and what broker and allocator say to each other.
//
//   client                        broker                           allocator (fd 3)
//     | -- Hello "resources" -----> |
//     | <- Welcome -------------- - |
//     | -- OpenResources ---------> |
//     | <- ResourcesOpened [2 fds]- |
//     |                             |
//     | == gRPC on the first ====== | -- AllocateMemory -------------> |
//     |                             |    (or AllocateTexture)         |
//     |                             | <- MemoryAllocated [fds] ------- |
//     |                             |    (or VulkanAllocated [fd])    |
//     | <- ResourceHandle [fds] --- |   on the second, the handle channel
//     | -- OfferHandle [fds] -----> |
#pragma once

#include <cstring>
#include <optional>

#include "proto/broker_messages.h"

namespace sluice::wire {

inline constexpr char kResourcesFeature[] = "resources";

// How a resource's memory was made; numbers as in proto/resources.proto.
enum class ResourceBacking : uint32_t {
  kAny = 0,
  kMemfd = 1,
  kDmaBuf = 2,
  kVulkan = 3,
  kGralloc = 4,
  kImported = 5,
  kD3d11 = 6,
};

inline constexpr int kMaxResourceDescriptors = 4;
inline constexpr int kMaxGrallocInts = 16;

// client -> broker, after Welcome, once on a connection that named the feature.
struct OpenResources {
  static constexpr MessageType kType = MessageType::kOpenResources;
  MessageHeader header;
  uint64_t reserved;  // 0.
};
static_assert(sizeof(OpenResources) == 16);

// broker -> client, with two descriptors when `status` is 0: a connected stream socket,
// non-blocking, for gRPC (on Windows a pipe with a ResourceTicket in it); and the handle channel.
// The resources' connection lasts as long as both, and the connection to the broker, do.
struct ResourcesOpened {
  static constexpr MessageType kType = MessageType::kResourcesOpened;
  MessageHeader header;
  int32_t status;  // 0, or an errno value: EBUSY (limit), ESHUTDOWN, EOPNOTSUPP (disabled).
  uint32_t reserved;
  char message[256];  // Why not, for a person.
};
static_assert(sizeof(ResourcesOpened) == 272);

// broker -> client, first and only one on its pipe (Windows): where gRPC finds the service, and
// what every call shows it (loopback_tokens.h).
struct ResourceTicket {
  static constexpr MessageType kType = MessageType::kResourceTicket;
  MessageHeader header;
  uint32_t port;   // Of 127.0.0.1.
  uint32_t flags;  // kTicketProves (loopback_tokens.h).
  uint8_t token[32];
};
static_assert(sizeof(ResourceTicket) == 48);

// broker -> client on the handle channel, with `descriptor_count` descriptors: what Export
// promised.
struct ResourceHandle {
  static constexpr MessageType kType = MessageType::kResourceHandle;
  MessageHeader header;
  uint64_t token;        // Of the Export call.
  uint64_t resource_id;  // As in its description.
  uint64_t size_bytes;   // Of the memory: at least this much can be mapped.
  uint32_t backing;      // ResourceBacking.
  uint32_t writable;     // 1 or 0.
  uint32_t descriptor_count;
  uint32_t int_count;
  int32_t ints[kMaxGrallocInts];  // Of a gralloc handle: GrallocInts; of Vulkan's: VulkanInts.
  uint64_t allocation_bytes;      // Of an opaque handle: the size that an importer names.
  uint8_t device_uuid[16];  // Of an opaque handle: whose it is. Of Direct3D's: the adapter's LUID.
};
static_assert(sizeof(ResourceHandle) == 136 && offsetof(ResourceHandle, backing) == 32);

// client -> broker on the handle channel, with one descriptor: memory for the Import call that
// names the token. At most kMaxOffers wait for theirs.
struct OfferHandle {
  static constexpr MessageType kType = MessageType::kOfferHandle;
  MessageHeader header;
  uint64_t token;
};
static_assert(sizeof(OfferHandle) == 16);
inline constexpr int kMaxOffers = 8;

// The meaning of the ints of a gralloc-shaped handle. Real gralloc modules each have their own;
// this is Sluice's, for consumers that know it.
struct GrallocInts {
  int32_t magic;  // kGrallocMagic.
  int32_t drm_fourcc;
  int32_t width;
  int32_t height;
  int32_t row_pitch;  // Bytes, of plane 0.
  int32_t size_low;
  int32_t size_high;
  int32_t reserved;
};
inline constexpr int32_t kGrallocMagic = 0x474c5321;  // "!SLG".
inline constexpr int kGrallocIntCount = sizeof(GrallocInts) / sizeof(int32_t);
static_assert(kGrallocIntCount <= kMaxGrallocInts);

// The meaning of the ints of a handle of Vulkan's memory. An opaque descriptor is its driver's
// business; but on a device that works in the host's memory it may be memory that everybody can
// map, with the resource's bytes somewhere in it (ExternalMemory::OffsetInDescriptor). A broker
// that knew nothing of that sends none.
struct VulkanInts {
  int32_t magic;     // kVulkanMagic.
  int32_t mappable;  // 1, or 0: the offset says nothing.
  int32_t offset_low;
  int32_t offset_high;
  uint8_t driver_uuid[16];
};
inline constexpr int32_t kVulkanMagic = 0x564c5321;  // "!SLV".
inline constexpr int kVulkanIntCount = sizeof(VulkanInts) / sizeof(int32_t);
static_assert(kVulkanIntCount <= kMaxGrallocInts);

inline std::optional<VulkanInts> ReadVulkanInts(const int32_t* ints, uint32_t count) {
  VulkanInts known = {};
  if (count < kVulkanIntCount) return std::nullopt;
  std::memcpy(&known, ints, sizeof(known));
  return known.magic == kVulkanMagic ? std::optional(known) : std::nullopt;
}

// The offset of the resource's bytes in the descriptor; none: it cannot be mapped.
inline std::optional<uint64_t> VulkanMapOffset(const int32_t* ints, uint32_t count) {
  const std::optional<VulkanInts> known = ReadVulkanInts(ints, count);
  if (!known.has_value() || known->mappable != 1) return std::nullopt;
  return uint64_t{static_cast<uint32_t>(known->offset_high)} << 32 |
         static_cast<uint32_t>(known->offset_low);
}

// broker -> allocator, when the one before is answered: answer with MemoryAllocated, of Vulkan's
// memory with VulkanAllocated.
struct AllocateMemory {
  static constexpr MessageType kType = MessageType::kAllocateMemory;
  MessageHeader header;
  uint64_t request_id;
  uint64_t size_bytes;
  uint32_t backing;  // ResourceBacking, never kAny, kImported or kD3d11.
  uint32_t reserved;
};
static_assert(sizeof(AllocateMemory) == 32);

// broker -> allocator, in its turn among the others: a resource of ResourceBacking::kD3d11, with
// two descriptors in the answer, the resource's and its fence's.
struct AllocateTexture {
  static constexpr MessageType kType = MessageType::kAllocateTexture;
  MessageHeader header;
  uint64_t request_id;
  uint64_t size_bytes;  // Of a buffer; of a texture what counts against its user.
  uint32_t width;       // 0: a buffer, and nothing below counts.
  uint32_t height;
  uint32_t depth;
  uint32_t array_layers;
  uint32_t channel_order;  // As in ResourceImage, as the next two.
  uint32_t channel_type;
  uint32_t drm_fourcc;
  uint32_t reserved;  // 0. No pitch, which would be the client's: Direct3D chooses its own.
};
static_assert(sizeof(AllocateTexture) == 56);

// allocator -> broker, with `descriptor_count` descriptors if `status` is 0. The broker checks what
// it gets: an allocator carries drivers.
struct MemoryAllocated {
  static constexpr MessageType kType = MessageType::kMemoryAllocated;
  MessageHeader header;
  uint64_t request_id;
  int32_t status;  // 0, or an errno value: EOPNOTSUPP (no such backing here), ENOMEM, ...
  uint32_t descriptor_count;
  uint64_t allocation_bytes;
  uint8_t device_uuid[16];
  char message[200];  // Why not, for a person.
};
static_assert(sizeof(MemoryAllocated) == 248);

// allocator -> broker, with one descriptor: Vulkan's memory. If there is none, MemoryAllocated says
// why.
struct VulkanAllocated {
  static constexpr MessageType kType = MessageType::kVulkanAllocated;
  MessageHeader header;
  uint64_t request_id;
  uint64_t allocation_bytes;
  uint64_t map_offset;  // As in VulkanInts.
  uint32_t mappable;    // 1 or 0.
  uint32_t reserved;
  uint8_t device_uuid[16];
  uint8_t driver_uuid[16];
};
static_assert(sizeof(VulkanAllocated) == 72);

}  // namespace sluice::wire
