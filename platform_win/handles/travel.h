// SPDX-License-Identifier: Apache-2.0
//
// What of a descriptor's object goes to another process, and what is made of it there: a kind and a
// few handles. Shared by messages (pipe.cc) and by children (inherited_handles.cc). Thread-safe.
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
  OwnedHandle owned;            // The last of `handles`, if it was made for the journey.
};

inline constexpr size_t kMaxTravelHandles = 8;

// kFailedPrecondition: such an object stays where it is. `to_child`: its maker duplicates for both,
// so that a pipe needs nobody's process.
absl::StatusOr<TravelParts> PartsOf(const HandleObject& object, bool to_child);

// Takes the handles. `pulled`: a less trusted peer has named them, so that their types are checked
// and only memory is taken.
absl::StatusOr<std::shared_ptr<HandleObject>> ObjectFrom(uint32_t kind,
                                                         std::vector<OwnedHandle> handles,
                                                         bool pulled);

}  // namespace sluice::os
