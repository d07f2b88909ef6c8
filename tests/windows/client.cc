// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/resources/client.h"

#include "tests/windows/resource_daemon.h"

namespace sluice::broker {

const std::string& SharedEndpoint() { return tests::SharedDaemon().endpoint(); }

}  // namespace sluice::broker
