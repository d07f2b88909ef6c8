// SPDX-License-Identifier: Apache-2.0
// The messages on a local session's handle channel, a SOCK_SEQPACKET pair whose ends the broker
// gave to the client and the worker: descriptors, each announced by one fixed-size message.
// Ownership of a descriptor passes with its message. The client's end of file is the session's end,
// and so is anything that comes from it and is none of its messages.
//
//   message       descriptors                          sent
//   ------------  -----------------------------------  --------------------------------------------
//   by the worker
//   RingOffer     2: command ring and reply ring,      once, first
//                 kRingFileBytes each, sealed
//   HeapSegment   1: a heap segment of `size` bytes,   before any frame names it
//                 sealed against resizing
//   ShadowMemory  1: memory of `size` bytes for the    before the answer to its CreateShadowBuffer
//                 buffer with the id `address`,
//                 opaque but to the client's graphics
//                 driver; with semaphores 3: also the
//                 one that the client signals, and
//                 the one that it waits for
//   by the client, to a worker that said kTakesImports
//   ImportHandle  1: memory for the object with the    before the command that makes the object
//                 id `address`                         (proto/commands/sharing/imported.proto)
#pragma once

#include <cstdint>

namespace sluice::wire {

// Shared virtual memory lies in segments of its own, which both sides map from this address on: far
// from where a 64-bit Linux puts programs, libraries and stacks. A client that cannot map there has
// no SVM.
#ifdef __SANITIZE_THREAD__
inline constexpr uint64_t kSvmBaseAddress = uint64_t{0x40} << 32;  // Its shadow lies at the other.
#else
inline constexpr uint64_t kSvmBaseAddress = uint64_t{0x2000} << 32;
#endif
inline constexpr uint32_t kFirstSvmSegment = 1u << 30;
// Memory that a GPU's driver pins: staging.
inline constexpr uint32_t kFirstPinnedSegment = 1u << 29;
// And for mirrors of buffers, pinned as well.
inline constexpr uint32_t kFirstMirrorSegment = 1u << 28;

inline constexpr uint32_t kHandleMagic = 0x48434c53;  // "SLCH"

enum class HandleMessageType : uint32_t {
  kRingOffer = 1,
  kHeapSegment = 2,
  kImportHandle = 3,
  kShadowMemory = 16
};

// In the RingOffer: what this worker takes beyond what every worker does.
inline constexpr uint32_t kTakesImports = 1;

struct HandleMessage {
  uint32_t magic;
  HandleMessageType type;
  uint64_t size;     // Of the ring file, or of the segment.
  uint32_t segment;  // From 1; 0 for the rings.
  uint32_t flags;    // Of a RingOffer; others: 0.
  uint64_t address;  // Where both sides map the segment (SVM), 0: anywhere; an object's id.
};
static_assert(sizeof(HandleMessage) == 32);

}  // namespace sluice::wire
