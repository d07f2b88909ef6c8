// SPDX-License-Identifier: Apache-2.0
//
// A helper's own view of the machine. Namespaces of its own (Linux) keep what it might still ask of
// the kernel away from the host. Its network has no interface that is up, its System V objects and
// host name are its own, and the rights that it has in there reach nothing outside.
//
// Each helper does this once, by main, while it has one thread and before anything else confines
// it. The broker has found out whether the system lets it (broker/config/sandbox_trial.h): then a
// failure is an error. On Windows nobody asks for it.
#pragma once

#include "absl/status/status.h"

namespace sluice::os {

// The gateway's stays the host's: it listens there.
enum class Network { kNone, kHosts };

// User, IPC and UTS namespaces, and that of the network. User and group stay what they are, inside
// and out; others' files show the overflow ids, and open as before. The process has every right in
// there until it gives them up, and none outside.
absl::Status EnterNamespaces(Network network);

// By a right that it would lose in a user namespace. On Windows nobody needs one.
bool MayListenOnLowPorts();

// Every capability, for good, of this process and of what it starts.
absl::Status GiveUpCapabilities();

}  // namespace sluice::os
