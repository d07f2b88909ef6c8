// SPDX-License-Identifier: Apache-2.0
#include "broker/os/config_keys.h"

namespace sluice {

std::string FixedKeyReason(const std::string&) { return ""; }

}  // namespace sluice
