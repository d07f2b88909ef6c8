// SPDX-License-Identifier: Apache-2.0
// Programs of ours that do in a process of their own what cannot be done in the application's
// (network_helper.h, libsluice/resource_helper.h). They lie beside the libraries, are not seen by
// the application (SpawnUnseen), and end with their first descriptor. Thread-safe. Linux only.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "broker/os/process.h"
#include "broker/os/threads.h"

namespace sluice::client {

// The path of a file of the client's that this library belongs to (broker/base/client_files.h).
absl::StatusOr<std::string> FindBesideLibrary(const std::string& name);

// The helper's process, for whose end somebody must wait once.
class HelperProcess {
 public:
  explicit HelperProcess(pid_t number) : number_(number) {}
  // Without a thread to be had, the system remembers the process as long as this one lives.
  ~HelperProcess() {
    if (!awaited_)
      os::StartThread("sluice-reaper", [number = number_] { os::AwaitUnseen(number); });
  }
  HelperProcess(const HelperProcess&) = delete;
  HelperProcess& operator=(const HelperProcess&) = delete;

  void AwaitEnd() {
    awaited_ = true;
    os::AwaitUnseen(number_);
  }

 private:
  const pid_t number_;
  bool awaited_ = false;
};

// Starts the program `name` with those arguments and descriptors (here, and their numbers there).
// It is silent unless SLUICE_LOG asks for lines.
absl::StatusOr<std::shared_ptr<HelperProcess>> StartHelperProgram(
    const std::string& name, std::vector<std::string> arguments,
    std::vector<std::pair<int, int>> descriptors);

}  // namespace sluice::client
