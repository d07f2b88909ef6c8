// SPDX-License-Identifier: Apache-2.0
//
// For tests of daemon-owned resources on Windows: a daemon of the test's own, other processes (this
// program again), clients of libsluice.
#pragma once

#include <gtest/gtest.h>
#include <windows.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sluice/sluice.h"

namespace sluice {

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
  // What to connect to, and the pipe's own name.
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

// A connection of libsluice, ended with the test.
class Client {
 public:
  explicit Client(const ResourceDaemon& daemon = SharedDaemon());
  ~Client() { Disconnect(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  sluice_connection* get() const { return connection_; }
  void Disconnect();
  // A buffer of `size` bytes; fails the test if that fails.
  void MakeBuffer(uint64_t size, sluice_capability* read, sluice_capability* write,
                  uint32_t flags = 0);
  sluice_handle Export(const sluice_capability& capability, sluice_access access);
  uint8_t* Map(const sluice_capability& capability, sluice_access access);

 private:
  sluice_connection* connection_ = nullptr;
};

sluice_create_info BufferInfo(uint64_t size, uint32_t flags = 0);

std::string TextOf(const sluice_capability& capability);

// Until `condition`, or the test's time limit.
bool Becomes(const std::function<bool()>& condition);

// What this program does as another process; its exit code.
int RunChildPart(const std::string& part, int argc, char** argv);

}  // namespace sluice
