// SPDX-License-Identifier: Apache-2.0
#include "broker/base/peer_version.h"

#include <algorithm>

#include "broker/base/version.h"

namespace sluice {
namespace {

constexpr std::string_view kPrefix = "version:";
constexpr size_t kLongest = 32;  // "10.20.30~rc1+local" and more; it is shown to a person.

bool IsVersion(std::string_view text) {
  constexpr char kAllowed[] = "0123456789.+-~abcdefghijklmnopqrstuvwxyz";
  return !text.empty() && text.size() <= kLongest &&
         text.find_first_not_of(kAllowed) == std::string_view::npos;
}

}  // namespace

std::string VersionFeature() { return std::string(kPrefix) + kVersion; }

std::string_view VersionIn(std::string_view features) {
  for (size_t begin = 0; begin < features.size();) {
    const size_t end = std::min(features.find(',', begin), features.size());
    const std::string_view feature = features.substr(begin, end - begin);
    begin = end + 1;
    if (!feature.starts_with(kPrefix)) continue;
    const std::string_view version = feature.substr(kPrefix.size());
    if (IsVersion(version)) return version;
  }
  return "";
}

std::string VersionAdvice(std::string_view self, std::string_view peer,
                          std::string_view peer_version) {
  std::string text("this ");
  if (peer_version == kVersion) {
    return text.append(self)
        .append(" and the ")
        .append(peer)
        .append(" are two builds of Sluice ")
        .append(kVersion)
        .append(": install both from one build");
  }
  text.append(self).append(" is Sluice ").append(kVersion).append(", the ").append(peer);
  text.append(peer_version.empty() ? " tells no version" : " is Sluice ").append(peer_version);
  return text.append(": update the older of the two");
}

}  // namespace sluice
