// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace sluice::os {

// Makes of what main was given the arguments as they were written, in UTF-8, for the process's
// whole life. Windows' runtime gives them in the system's code page, and wildcards as names of
// files.
void TakeCommandLine(int* argc, char*** argv);

}  // namespace sluice::os
