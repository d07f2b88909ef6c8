// SPDX-License-Identifier: Apache-2.0
//
// Takes a descriptor's object apart for its way to another process, into a kind and a few handles,
// and puts it together there. For messages (pipe.cc) and children (inherited_handles.cc).
// Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "platform_win/handles/handle_table.h"

namespace sluice::os {

struct TravelParts {
  HandleKind kind = HandleKind::kFile;
  std::vector<HANDLE> handles;  // The object's, but for `owned`.
  OwnedHandle owned;            // The last of `handles`, if it was duplicated for this.
};

inline constexpr size_t kMaxTravelHandles = 8;

// kFailedPrecondition: such an object cannot travel. `to_child`: the parent duplicates for both
// ends, so that a pipe does not need the other process.
absl::StatusOr<TravelParts> PartsOf(const HandleObject& object, bool to_child);

// Takes the handles over. `pulled`: a less trusted peer has named them, so their types are checked
// and only memory is accepted.
absl::StatusOr<std::shared_ptr<HandleObject>> ObjectFrom(uint32_t kind,
                                                         std::vector<OwnedHandle> handles,
                                                         bool pulled);

}  // namespace sluice::os
