// SPDX-License-Identifier: Apache-2.0
#include "broker/os/daemon_process.h"

#include <windows.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "broker/os/process.h"

namespace sluice::os {

// Descriptors 0 to 2 are never given to anything else here (handle_table.h).
void EnsureStandardDescriptors() {}

bool ReceiveChildSignals() { return false; }

// On Windows no process inherits children.
void LeaveFirstProcess() {}

void PrepareDaemonProcess() {
  // A fault becomes a line in the log and an exit code, not a window that waits for a person.
  ::SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX | SEM_NOOPENFILEERRORBOX);
  // Libraries come from the system's folder alone, not from PATH or the current folder.
  ::SetDefaultDllDirectories(LOAD_LIBRARY_SEARCH_SYSTEM32);
  ::HeapSetInformation(nullptr, HeapEnableTerminationOnCorruption, nullptr, 0);
}

void ForgetVariable(const char* name) { ::_putenv_s(name, ""); }

int BecomeProgram(const std::string& path, char** argv) {
  SpawnOptions options;
  options.path = path;
  for (char** argument = argv + 1; *argument != nullptr; ++argument) {
    options.arguments.emplace_back(*argument);
  }
  options.environment = OwnEnvironment();
  options.sandbox.new_session = false;
  options.sandbox.parent_death_signal = 1;
  absl::StatusOr<ChildProcess> child = Spawn(options);
  if (!child.ok()) {
    std::fprintf(stderr, "sluiced: %s\n", std::string(child.status().message()).c_str());
    return -1;
  }
  return child->WaitAndReap(-1)->code;
}

}  // namespace sluice::os
