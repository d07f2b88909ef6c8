// SPDX-License-Identifier: Apache-2.0
//
// Children that nobody opens: a worker has a tenant's data, a gateway the private key, and all of a
// service's children have one user. The list holds from a child's first moment, since another child
// could wait for it. Thread-safe.
#pragma once

#include <windows.h>

namespace sluice::os {

// The system may do all. Anybody else may see that it is there and wait for its end, the owner too,
// who could else change the list: 0x101000 is PROCESS_QUERY_LIMITED_INFORMATION and SYNCHRONIZE,
// 0x100800 a thread's of the same names. Handles that were given (CreateProcess, DuplicateHandle)
// stay what they are.
inline constexpr wchar_t kHiddenProcessList[] =
    L"D:P(A;;GA;;;SY)(A;;0x101000;;;WD)(A;;0x101000;;;S-1-3-4)";

// For CreateProcess: what others than the system get of the process. Null if the system takes no
// such list.
SECURITY_ATTRIBUTES* HiddenProcess();

}  // namespace sluice::os
