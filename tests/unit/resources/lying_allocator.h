// SPDX-License-Identifier: Apache-2.0
//
// How lying_allocator.cc lies: what a test asks for as the size of a buffer.
#pragma once

#include <cstdint>

namespace sluice::broker {

enum class AllocatorLie : uint64_t {
  kNoDescriptor = 1,    // Success without memory.
  kWrongCount,          // More descriptors announced than sent.
  kMemoryWithAnError,   // Failure with memory.
  kTooManyDescriptors,  // More than any answer may have.
  kOtherRequest,        // An answer to what was not asked.
  kEndlessMessage,      // Text without a terminator.
  kShortMessage,        // Half of the message.
  kTwice,               // The same answer again.
  kEnds,                // No answer: it is gone.
  kPipe,                // No memory at all.
  kSmaller,             // Memory of one byte.
  kLingers,             // A socket that takes long to close.
  kUnsealed,            // Memory that could shrink under its users.
  kVulkanPastEnd,       // Vulkan's memory that begins so late that it ends outside.
  kVulkanWraps,         // The same, by an end that is no number of 64 bits.
  kVulkanLingers,       // A socket instead of Vulkan's memory.
  kVulkanUnsealed,      // Vulkan's memory, to be mapped, that could shrink.
  kVulkanUnasked,       // Vulkan's memory where another kind was asked for.
  kForgesLog,           // The right answer, after a line that looks like one of the broker's log.
  kNone = 4096,
};

// How long closing such a socket takes.
inline constexpr int kLingerS = 8;

}  // namespace sluice::broker
