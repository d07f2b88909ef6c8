// SPDX-License-Identifier: Apache-2.0
//
// Files as descriptors: the operator's for a child that may not open them itself, and scratch files
// and pipes into which a child writes its answer. All functions are thread-safe; descriptors are
// not inherited unless Spawn gives them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/os/scoped_handle.h"

namespace sluice::os {

absl::StatusOr<UniqueFd> OpenForReading(const std::string& path);
// The rest of a file that was opened for reading, or of a pipe until its last writer is gone.
// kOutOfRange: more than `max_bytes`. kDeadlineExceeded: a pipe into which nobody writes for 5 s.
absl::StatusOr<std::string> ReadToEnd(int fd, size_t max_bytes);
// A file that a person named: like ReadToEnd, also of a pipe ("<(command)"), and of a device no
// more than that. Any failure is told with the path and the reason.
absl::StatusOr<std::string> ReadNamedFile(const std::string& path, size_t max_bytes);

// A new file, to be written; an error if there is one of that name. A private one is its owner's
// alone from its first moment, whatever the folder and the umask say.
enum class NewFile { kPrivate, kForAll };
absl::StatusOr<UniqueFd> CreateNewFile(const std::string& path, NewFile kind);

// An empty file without a name, in memory where the system can.
absl::StatusOr<UniqueFd> CreateScratchFile(const char* name);
absl::Status WriteWhole(int fd, std::string_view bytes);
// All of a scratch file from its beginning, of at most `max_bytes`; whoever holds it may still
// write meanwhile.
absl::StatusOr<std::string> ReadScratchFile(int fd, size_t max_bytes);

// (read end, write end). Written bytes stay readable when the writer is gone.
absl::StatusOr<std::pair<UniqueFd, UniqueFd>> CreatePipe();
// The same for a child's output, to be watched while the child lives: reading it never waits.
absl::StatusOr<std::pair<UniqueFd, UniqueFd>> CreateOutputPipe();
// The pipe's contents, at most `max_bytes` (of an output pipe 4 KiB or more); "" at its end.
std::string ReadPipe(int fd, size_t max_bytes);

bool IsAbsolutePath(const std::string& path);
bool IsDirectory(const std::string& path);
// OK, or why this process cannot read the file.
absl::Status CheckReadableFile(const std::string& path);

}  // namespace sluice::os
