// SPDX-License-Identifier: Apache-2.0
//
// The release's number, as --version and the admin service say it. SLUICE_VERSION comes from
// CMake's project(); nothing decides by it: what a peer can do is told by feature names.
#pragma once

namespace sluice {

#ifdef SLUICE_VERSION
inline constexpr char kVersion[] = SLUICE_VERSION;
#else
inline constexpr char kVersion[] = "unversioned";
#endif

}  // namespace sluice
