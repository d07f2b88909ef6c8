// SPDX-License-Identifier: Apache-2.0
// Client and daemon tell each other their releases, for messages to a person when one cannot serve
// the other. No code decides by them. A release travels as the feature "version:0.1.0" of Hello,
// and of the Welcome that answers such a Hello; over the network of OpenSession and
// DescribePlatformsRequest, and of their answers. Older builds send none. Thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

// This release's.
std::string VersionFeature();

// The version in a peer's list of features; "" of one that tells none, or no number.
std::string_view VersionIn(std::string_view features);
// The same for messages of the network, which have a string for each feature.
template <typename Features>
std::string_view VersionAmong(const Features& features) {
  for (const std::string& feature : features) {
    if (const std::string_view version = VersionIn(feature); !version.empty()) return version;
  }
  return "";
}

// "this client is Sluice 0.2.0, the daemon is Sluice 0.1.0: update the older of the two". `self`
// and `peer` are what they are called; `peer_version` is empty of one that tells none.
std::string VersionAdvice(std::string_view self, std::string_view peer,
                          std::string_view peer_version);

}  // namespace sluice
