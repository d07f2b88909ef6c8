// SPDX-License-Identifier: Apache-2.0
//
// The release's number, as --version and the admin service say it. SLUICE_VERSION comes from
// CMake's project(). A peer's abilities are told by feature names, and not by it. It decides one
// thing: how long the places of old are served (daemon_places.h).
#pragma once

namespace sluice {

#ifdef SLUICE_VERSION
inline constexpr char kVersion[] = SLUICE_VERSION;
#else
inline constexpr char kVersion[] = "unversioned";
#endif

}  // namespace sluice
