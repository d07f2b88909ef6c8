// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace sluice::os {

// Replaces main's arguments by those that were written, in UTF-8, for the process's whole life.
// Windows' runtime gives main the text in the system's code page, with wildcards expanded.
void TakeCommandLine(int* argc, char*** argv);

}  // namespace sluice::os
