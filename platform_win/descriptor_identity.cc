// SPDX-License-Identifier: Apache-2.0
#include "broker/os/descriptor_identity.h"

namespace sluice::os {

// On Windows programs do not close handles that they did not open, and nothing forks.
DescriptorIdentity IdentityOf(int fd) { return {fd, 0, 0}; }
bool IsStillThere(const DescriptorIdentity&) { return true; }
bool HasStandardDescriptors() { return true; }
UniqueFd OpenSentinel() { return UniqueFd(); }
std::vector<DescriptorIdentity> OpenSockets() { return {}; }
std::vector<DescriptorIdentity> SocketsConnectedTo(std::string_view,
                                                   const std::vector<DescriptorIdentity>&) {
  return {};
}
bool HasNewConnection(const std::vector<DescriptorIdentity>&) { return false; }

}  // namespace sluice::os
