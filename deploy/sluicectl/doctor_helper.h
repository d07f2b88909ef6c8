// SPDX-License-Identifier: Apache-2.0
//
// How doctor and its helper processes understand each other: lines on a descriptor, one fact each.
// In such a process drivers may crash or hang. Main thread only.
#pragma once

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace sluice::ctl {

inline constexpr char kLoader[] = "libOpenCL.so.1";
inline constexpr int kAnswerFd = 3;  // Of a helper process.
inline constexpr char kLoads[] = "loads";
inline constexpr char kPlatformLine[] =
    "platform ";                                    // list-platforms' answer, followed by the name,
inline constexpr char kNoneLine[] = "none ";        // by why there is none of ours,
inline constexpr char kContextLine[] = "context ";  // and by kOpened or why there is none.
inline constexpr char kOpened[] = "opened";

inline bool IsOurs(absl::string_view platform) { return absl::StartsWith(platform, "Sluice ("); }

}  // namespace sluice::ctl
