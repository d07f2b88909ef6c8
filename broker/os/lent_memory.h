// SPDX-License-Identifier: Apache-2.0
//
// Descriptors of memory that the daemon lends to programs: checks those that a stranger brings, and
// makes those for a program that may write, or only read.
//
// The daemon protects a resource's users from each other. Nobody may shrink the memory under a
// peer: a memfd carries F_SEAL_SHRINK and F_SEAL_GROW; a dma-buf cannot change its size. A reader
// must not become a writer. A read-only descriptor of a memfd is not enough for that: whoever may
// write to the inode can open it again through /proc/self/fd. So the inode belongs to the daemon
// with mode 0600. That does not stop the daemon's own user, or root in a container: for such a
// reader the memory is sealed with F_SEAL_FUTURE_WRITE. The writers' mappings stay writable, and
// there can be no new ones.
//
// Memory that the daemon has made, and destroyed, stays as long as somebody has it open. The daemon
// opens a memfd anew for itself and for each whom it lends it to, since the kernel counts files that
// were opened, and not the one that a memfd began with.
//
// All functions are thread-safe, take no ownership of the descriptors that they look at, and return
// close-on-exec ones.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/os/close_elsewhere.h"
#include "broker/os/scoped_handle.h"
#include "broker/os/types.h"

namespace sluice::os {

enum class LentKind {
  kMemfd,
  kDmaBuf,
  kOpaque,  // A driver's own (Vulkan's opaque descriptors, Direct3D's handles): not to look into.
};

// Zero-filled, of fixed size, sealed against resizing but not yet against writing.
absl::StatusOr<UniqueFd> CreateLentMemory(const char* name, uint64_t size_bytes);

// The kind of a stranger's descriptor, if it is memory that may be lent on: a memfd that carries
// the size seals, or a dma-buf, of at least `size_bytes`.
absl::StatusOr<LentKind> CheckLentMemory(int fd, uint64_t size_bytes);

// OK if it can be opaque memory: that cannot be looked into, but it is no socket.
absl::Status CheckOpaqueMemory(int fd);

// The size of all the memory, whatever part of it a shape covers.
absl::StatusOr<uint64_t> LentMemoryBytes(int fd);

// Makes a memfd's inode the daemon's own as far as this process may. Does so only if the descriptor
// is for writing: a client that may only read has no right to give the memory away. With
// `final_seals` nobody can add seals any more: then writing can never be sealed off.
void TakeOverLentMemory(int fd, bool final_seals);

// Replaces descriptors of memory that was made for the daemon by its own, which RemainingHolders
// can tell from lent ones.
absl::Status OpenOwnMemory(StrangersFds* fds);

// kFailedPrecondition: the descriptor was only ever for reading, or the memory has been sealed for
// a reader.
absl::StatusOr<UniqueFd> LendForWriting(int fd, LentKind kind);

// A descriptor that `reader` cannot turn into one for writing; with `trusted`, not by mistake.
// kFailedPrecondition: there is no such descriptor of this memory.
absl::StatusOr<UniqueFd> LendForReading(int fd, LentKind kind, uid_t reader, bool trusted);

// Whoever has memory open that the daemon has made, lent and destroyed: by a descriptor, a mapping,
// a message under way. Unseen are Windows' memory, and what a device's driver has imported by a
// descriptor of its own kind that was closed afterwards. Not thread-safe.
class RemainingHolders {
 public:
  // `own` are the daemon's descriptors. Only memfds are kept open, to ask by them.
  explicit RemainingHolders(StrangersFds own);

  bool Any() const;

 private:
  StrangersFds memfds_;
  UniqueFd files_;  // Knows of other files that are open, without keeping them so.
};

}  // namespace sluice::os
