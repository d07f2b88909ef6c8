// SPDX-License-Identifier: Apache-2.0
//
// Operations on one control group of version 2, named by its folder: its files, the groups in it,
// its processes. For processes to which a group is delegated (delegation.h). Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "broker/os/scoped_handle.h"

namespace sluice::os {

// Nothing if there is no such file: its controller is off, or the kernel does not have it.
std::optional<std::string> ReadOfGroup(const std::string& group, const char* file);
// For a file that holds one number; nothing also for "max".
std::optional<uint64_t> ReadNumberOfGroup(const std::string& group, const char* file);
// For a file of lines "KEY NUMBER"; 0 if it has no such line.
uint64_t ReadEventOfGroup(const std::string& group, const char* file, absl::string_view key);

// NotFound: there is no such file.
absl::Status WriteToGroup(const std::string& group, const char* file, absl::string_view value);

absl::Status MakeGroup(const std::string& group);  // OK if it is there.
// For SpawnOptions::control_group.
absl::StatusOr<UniqueFd> OpenGroup(const std::string& group);
// The groups in it, by their names.
std::vector<std::string> GroupsIn(const std::string& group);

// Enables in the groups of this one those of `wanted` that it can, and returns them.
// kResourceExhausted: it has processes of its own.
absl::StatusOr<std::vector<std::string>> EnableControllers(const std::string& group,
                                                           const std::vector<std::string>& wanted);
// Takes all controllers from the groups in it, deepest first.
void DisableControllers(const std::string& group);

// Moves all processes of `from` itself, with those that they start meanwhile.
absl::Status MoveProcesses(const std::string& from, const std::string& to);

void KillGroup(const std::string& group);  // All processes in it and below.
// Removes the group with those in it. True if it is gone, or was already; false if it has
// processes.
bool RemoveGroup(const std::string& group);

}  // namespace sluice::os
