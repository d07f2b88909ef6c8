// SPDX-License-Identifier: Apache-2.0
#include "broker/config/config_keys.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace sluice::broker {

std::string FixedKeyReason(const std::string& key) {
  constexpr char kCannot[] = "nothing but its default: it cannot be chosen on Windows, where ";
  if (key == "user") return absl::StrCat(kCannot, "workers run as LocalService, restricted");
  if (key == "cache_directory") return absl::StrCat(kCannot, "no worker has a cache of its own");
  if (key == "system_calls")
    return absl::StrCat(kCannot, "a worker's restricted token decides what it may ask for");
  if (key == "executable")
    return absl::StrCat(kCannot, "a worker's restricted token decides what it may run");
  if (key == "readable")
    return absl::StrCat(kCannot, "a worker's restricted token decides what it may read");
  if (key == "control_groups")
    return "\"auto\", which stands for none: Windows has no control groups";
  if (key == "pool")
    return "nothing but its default: on Windows each session has a worker of its own";
  if (key == "client_crl")
    return "nothing but its default: on Windows no revocation lists are read";
  if (key == "turns")
    return "nothing but its default: on Windows sessions take no turns at a device";
  if (key == "socket_group")
    return absl::StrCat(kCannot, "socket_mode opens the pipe to everybody or to nobody else");
  if (key == "monitor_group")
    return absl::StrCat(kCannot, "the monitor pipe is open to Performance Monitor Users");
  return "";
}

bool IsSameVariable(const std::string& a, const std::string& b) {
  return absl::EqualsIgnoreCase(a, b);
}

// An access list has no simple answer.
std::string OtherReaders(const std::string&) { return ""; }
std::string OtherWriters(const std::string&) { return ""; }

}  // namespace sluice::broker
