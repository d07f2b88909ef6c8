// SPDX-License-Identifier: Apache-2.0
//
// Checks the contents of PEM files, for errors that gRPC does not give: it only fails later,
// without naming a file. The client's side uses it too. Plain functions.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace sluice::wire {

// A file's content, and how a message calls it.
struct PemFile {
  std::string name;
  std::string content;
};

// A certificate that has not expired, and its private key. An error begins with the name of the
// file that it is about.
absl::Status CheckIdentity(const PemFile& certificate, const PemFile& key);

// At least one certificate of an authority.
absl::Status CheckAuthorities(const PemFile& authorities);

// At least one revocation list, and none that is over.
absl::Status CheckRevocations(const PemFile& lists);

}  // namespace sluice::wire
