// SPDX-License-Identifier: Apache-2.0
// A protobuf arena whose first block is part of it, so that encoding or decoding a common message
// allocates nothing. Owned by one thread (ScopedCommand) or guarded by its owner's lock (replies).
// Thread-compatible.
#pragma once

#include <cstddef>

#include "google/protobuf/arena.h"

namespace sluice::client {

class MessageArena {
 public:
  MessageArena() : arena_(block_, sizeof(block_)) {}
  MessageArena(const MessageArena&) = delete;
  MessageArena& operator=(const MessageArena&) = delete;

  template <typename T>
  T* Make() {
    return google::protobuf::Arena::CreateMessage<T>(&arena_);
  }
  // Frees all messages made since the last call.
  void Reset() { arena_.Reset(); }

 private:
  alignas(std::max_align_t) char block_[8 * 1024];
  google::protobuf::Arena arena_;
};

}  // namespace sluice::client
