// SPDX-License-Identifier: Apache-2.0
//
// How a child finds the descriptors that Spawn gives it: the handles are inherited, and a variable
// of the environment says which number and kind each has. The child's handle table takes them at
// its first use and removes the variable, so that nothing the child starts believes it.
//
// The variable comes from the parent, which has all power over the process anyway.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "platform_win/handles/handle_table.h"

namespace sluice::os {

struct InheritedHandle {
  int number = -1;
  std::shared_ptr<HandleObject> object;
};

std::vector<InheritedHandle> TakeInheritedHandles();

// Makes one entry for the variable. Adds the handles that must be inherited for it to
// `inheritable`.
absl::StatusOr<std::string> DescribeForChild(const HandleObject& object, int number,
                                             std::vector<OwnedHandle>* inheritable);

inline constexpr wchar_t kInheritedVariable[] = L"SLUICE_INHERITED_HANDLES";

}  // namespace sluice::os
