// SPDX-License-Identifier: Apache-2.0
//
// How many connections one [[network]] entry has at most (deploy/linux/sluiced.toml). Plain data.
#pragma once

namespace sluice::gateway {

struct ConnectionLimits {
  int most = 1024;            // That have been admitted.
  int most_of_address = 512;  // Of these, and of newcomers, from one address.
  int most_newcomers = 256;   // That have not said who they are.
};

}  // namespace sluice::gateway
