// SPDX-License-Identifier: Apache-2.0
//
// For tests of daemon-owned resources on Windows: a daemon of the test's own, other processes (this
// program again).
#pragma once

#include <gtest/gtest.h>
#include <windows.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/unit/resources/client.h"

namespace sluice::tests {

inline constexpr int kTestTimeoutMs = 30'000;

// A process with pipes for its stdin and stdout, ended with this.
class Process {
 public:
  explicit Process(const std::vector<std::string>& arguments);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void Kill();
  int Wait();  // Its exit code; 124 if it does not end.
  std::string ReadLine();
  void WriteLine();
  DWORD pid() const { return process_.dwProcessId; }

 private:
  PROCESS_INFORMATION process_ = {};
  HANDLE to_ = nullptr;
  HANDLE from_ = nullptr;
};

// sluiced.exe from beside this program, on a pipe of its own.
class ResourceDaemon {
 public:
  ResourceDaemon();
  // The address to connect to, and the pipe's own name.
  const std::string& endpoint() const { return endpoint_; }
  std::string pipe_name() const { return R"(\\.\pipe\)" + endpoint_.substr(5); }
  void Kill() { process_->Kill(); }
  // The process of this name that it has started; null if it has none.
  HANDLE OpenChild(const char* executable) const;

 private:
  std::string endpoint_;
  std::unique_ptr<Process> process_;
};

// The one daemon of tests that do it no harm.
ResourceDaemon& SharedDaemon();

std::string TextOf(const sluice_capability& capability);

// This program's task as another process; its exit code.
int RunChildPart(const std::string& part, int argc, char** argv);

}  // namespace sluice::tests
