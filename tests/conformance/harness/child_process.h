// SPDX-License-Identifier: Apache-2.0
//
// Scenes that need a process of their own: printf on stdout, fork, exit without release, dlclose of
// the loader. The suite starts itself again with --child=NAME, collects what the child writes, and
// ends it if it outlives its bound. Owner: the calling test. Thread: any. Trust: the child is this
// same program.
#pragma once

#include <chrono>
#include <string>

namespace sluice::conformance {

using ChildScene = int (*)();

// Registers `scene` under `name`; used through CHILD_SCENE at namespace scope.
bool RegisterChildScene(const char* name, ChildScene scene);

// Runs the scene called `name` in this process; 125 if there is none.
int RunChildScene(const std::string& name);

struct ChildResult {
  bool timed_out = false;
  int exit_code = -1;  // -1 if it ended by a signal.
  int signal = 0;
  std::string output;  // stdout only.
};

// Starts this program again for one scene, on the same platform, and waits for its end.
ChildResult RunInChild(const std::string& name,
                       std::chrono::seconds limit = std::chrono::seconds(40));

// For a scene: whether this process may have more threads from now on. False: it goes on as before.
// Root has no limit, and so is root no more. Not on Windows.
bool AllowThreads(bool allow);

// Ends this process at once, as a crash.
[[noreturn]] void EndThisProcess();

}  // namespace sluice::conformance

#define CHILD_SCENE(name)                                                  \
  int ChildScene##name();                                                  \
  [[maybe_unused]] const bool registered_##name =                          \
      ::sluice::conformance::RegisterChildScene(#name, &ChildScene##name); \
  int ChildScene##name()
