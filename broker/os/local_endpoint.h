// SPDX-License-Identifier: Apache-2.0
//
// How a person writes the name of a daemon's socket (local_socket.h) as an endpoint, and where a
// client looks if nobody does. Thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace sluice::os {

// `text` is what follows "unix:" (an absolute path, perhaps after "//") or "pipe:" (NAME or
// \\.\pipe\NAME). An error says what it must be.
absl::StatusOr<std::string> ParseLocalName(std::string_view text);

// The name as others of the daemon's places are made of it: of a path without "//" and "/./".
std::string NormalLocalName(const std::string& name);

// Such an endpoint, for messages: "unix:/ABSOLUTE/PATH", "pipe:NAME".
const char* LocalEndpointForm();

// Such a name by itself: "/ABSOLUTE/PATH", "\\.\pipe\NAME".
const char* LocalNameForm();

// Advice to a person where none answers, for messages.
const char* StartDaemonAdvice();

// The user's own daemon if there is one, else the machine's, each also at its place of old.
std::string DefaultClientName();

}  // namespace sluice::os
