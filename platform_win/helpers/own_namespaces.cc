// SPDX-License-Identifier: Apache-2.0
#include "daemon/helpers/own_namespaces.h"

namespace sluice::os {
namespace {

absl::Status NotHere() { return absl::UnavailableError("Windows has no namespaces"); }

}  // namespace

absl::Status EnterNamespaces(Network) { return NotHere(); }

bool MayListenOnLowPorts() { return false; }

// A helper's token, which it got at its start, has no right that it could give up.
absl::Status GiveUpCapabilities() { return absl::OkStatus(); }

}  // namespace sluice::os
