// SPDX-License-Identifier: Apache-2.0
//
// Finds out if this process runs in a container, by the marks that runtimes leave there.
// Thread-safe.
#pragma once

#include <string>

namespace sluice::ctl {

// "a container of podman's", "a Flatpak sandbox", "a container"; "" if there is no sign of one.
std::string ContainerAround();

}  // namespace sluice::ctl
