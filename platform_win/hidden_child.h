// SPDX-License-Identifier: Apache-2.0
//
// Children that nobody opens: a worker has a tenant's data, a gateway the private key, and all of a
// service's children have one user. The list holds from a child's first moment, since another child
// could wait for it. Thread-safe.
#pragma once

#include <windows.h>

namespace sluice {

// For CreateProcess: what others than the system get of the process. Null if the system takes no
// such list.
SECURITY_ATTRIBUTES* HiddenProcess();

}  // namespace sluice
