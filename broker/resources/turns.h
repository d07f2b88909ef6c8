// SPDX-License-Identifier: Apache-2.0
//
// The order of turns at one resource: many readers or one writer, first come first served. A reader
// that comes after a waiting writer waits behind it, so that neither kind can starve the other.
//
//   Request --> [waiting] --> [holding] --> End
//                  |  turn comes: TakeGranted names it
//                  +-- Cancel
//
// Owner: the resource's entry in ResourceRegistry. Thread-compatible; no clock, no I/O. Tickets are
// the registry's, distinct, and greater than those before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace sluice::broker {

enum class ResourceAccess { kRead, kWrite };

class ResourceTurns {
 public:
  // The contents that a writer leaves: a new generation; one that may be half-written; or those
  // that it found.
  enum class Contents { kWritten, kIndeterminate, kUntouched };

  void Request(uint64_t ticket, ResourceAccess access);

  // The tickets that have come to hold since the last call, in order.
  std::vector<uint64_t> TakeGranted();

  // Ends a wait or a hold, whichever it is. `contents` matters for a writer's hold only.
  void End(uint64_t ticket, Contents contents);

  uint64_t generation() const { return generation_; }
  bool indeterminate() const { return indeterminate_; }
  bool has_writer() const { return has_writer_; }
  size_t reader_count() const { return holders_.size() - (has_writer_ ? 1 : 0); }
  size_t holder_count() const { return holders_.size(); }
  size_t waiting_count() const { return waiting_.size(); }

 private:
  void GrantFromFront();

  // By ticket, which is the order in which they came: thousands may end at once.
  std::map<uint64_t, ResourceAccess> waiting_;
  std::map<uint64_t, ResourceAccess> holders_;
  std::vector<uint64_t> granted_;
  bool has_writer_ = false;
  bool indeterminate_ = false;
  uint64_t generation_ = 0;
};

}  // namespace sluice::broker
