// SPDX-License-Identifier: Apache-2.0
//
// A worker's requests to the system for its own process. Thread-safe but for HoldSessionNice and
// CaptureStdout, which are called once, before there are other threads.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "broker/os/scoped_handle.h"

namespace sluice::worker {

// Sets a variable of the environment for libraries that are loaded later.
void SetVariable(const char* name, const char* value);

// Before HideFromOthers, and other threads: opens what SetProcessNice changes for the session that
// this process leads, beside its threads. Nothing where it leads none.
void HoldSessionNice();
// Of all threads of this process. False if the system refuses, or could not be made to take it
// back; the session's follows all the same.
bool SetProcessNice(int nice);
bool SetProcessUtilisation(uint32_t most);  // Of 1024.

// From now on what the process writes to stdout comes out of the descriptor, which WaitReadable
// waits for.
absl::StatusOr<os::UniqueFd> CaptureStdout();
// The output written so far, at most `max_bytes`; "" if there is nothing now.
std::string ReadCaptured(int fd, size_t max_bytes);

// True if a name matches a shell wildcard: *, ?, [abc], [a-z], [!abc].
bool MatchesWildcard(const std::string& pattern, const std::string& name);

// A new folder that is this user's alone, of which others know by the prefix whose it is; "" if
// none can be made. Its separators are '/', as in options of compilers.
inline constexpr char kTemporaryFolderPrefix[] = "sluice-include-";
std::string MakeTemporaryFolder();
// Locks a folder of this user's until the descriptor is closed, against its removal too where the
// system can. None if another process has it, or it is no folder, or another's.
os::UniqueFd HoldFolder(const std::string& folder);
// Removes a folder that is held, and what is in it: that one, whatever has its name by now, and
// nothing that a link in it leads to. One that could not be held (a file system without locks) goes
// by its name.
void RemoveHeldFolder(const std::string& folder, os::UniqueFd held);
// True if an absolute path of plain parts between '/', appended to a folder's, names something in
// that folder. On Windows some do not, which other systems' clients may well use: `\`, `:`.
bool IsPathInFolder(const std::string& path);

// The system's OpenCL loader.
extern const char kOpenClLoader[];
extern const char kOpenClLoaderAdvice[];  // For who has none.

}  // namespace sluice::worker
