// SPDX-License-Identifier: Apache-2.0
//
// Children that no other process may open: a worker has a tenant's data, a gateway the private key,
// and all of a service's children have one user. The access list holds from a child's first moment,
// since another child could wait for it. Thread-safe.
#pragma once

#include <windows.h>

namespace sluice::os {

// The system may do all. Anybody else may see that the process exists and wait for its end. The
// same holds for the owner, who could otherwise change the list. 0x101000 is
// PROCESS_QUERY_LIMITED_INFORMATION and SYNCHRONIZE; 0x100800 are the same rights to a thread.
// Handles that exist already (CreateProcess, DuplicateHandle) keep their rights.
inline constexpr wchar_t kHiddenProcessList[] =
    L"D:P(A;;GA;;;SY)(A;;0x101000;;;WD)(A;;0x101000;;;S-1-3-4)";

// For CreateProcess: the new process's access list. Null if the system does not accept it.
SECURITY_ATTRIBUTES* HiddenProcess();

}  // namespace sluice::os
