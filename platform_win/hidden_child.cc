// SPDX-License-Identifier: Apache-2.0
#include "platform_win/hidden_child.h"

#include "platform_win/security/access_notation.h"

namespace sluice::os {

SECURITY_ATTRIBUTES* HiddenProcess() {
  static const AccessNotation* descriptor = new AccessNotation(kHiddenProcessList);
  static SECURITY_ATTRIBUTES attributes = {sizeof(attributes), descriptor->get(), FALSE};
  return descriptor->get() == nullptr ? nullptr : &attributes;
}

}  // namespace sluice::os
