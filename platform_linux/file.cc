// SPDX-License-Identifier: Apache-2.0
#include "broker/os/file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "platform_linux/errno_status.h"

namespace sluice::os {
namespace {

constexpr int kPipePatienceMs = 5000;  // A regular file is always readable.

}  // namespace

// With O_NONBLOCK: else open(2) of a FIFO would wait for its first writer, for ever.
absl::StatusOr<UniqueFd> OpenForReading(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file.valid()) return ErrnoStatus(errno, absl::StrCat("cannot read ", path));
  return file;
}

absl::StatusOr<std::string> ReadToEnd(int fd, size_t max_bytes) {
  std::string content;
  char buffer[4096];
  while (true) {
    pollfd readable = {fd, POLLIN, 0};
    if (::poll(&readable, 1, kPipePatienceMs) == 0) {
      return absl::DeadlineExceededError(
          absl::StrCat("nothing has been written into it for ", kPipePatienceMs / 1000, " s"));
    }
    const ssize_t bytes = ::read(fd, buffer, sizeof(buffer));
    if (bytes < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (bytes < 0) return ErrnoStatus(errno, "reading it");
    if (bytes == 0) return content;
    content.append(buffer, static_cast<size_t>(bytes));
    if (content.size() > max_bytes)
      return absl::OutOfRangeError(
          absl::StrCat("it is longer than ", max_bytes, " bytes, the most that is taken"));
  }
}

absl::StatusOr<UniqueFd> CreateNewFile(const std::string& path, NewFile kind) {
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY,
                       kind == NewFile::kPrivate ? 0600 : 0666));
  if (!file.valid()) return ErrnoStatus(errno, absl::StrCat("cannot create ", path));
  return file;
}

absl::StatusOr<UniqueFd> CreateScratchFile(const char* name) {
  UniqueFd file(::memfd_create(name, MFD_CLOEXEC));
  if (!file.valid()) return ErrnoStatus(errno, "memfd_create");
  return file;
}

absl::Status WriteWhole(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return ErrnoStatus(errno, "writing a file");
    if (written > 0) bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadScratchFile(int fd, size_t max_bytes) {
  struct stat info;
  if (::fstat(fd, &info) != 0) return ErrnoStatus(errno, "fstat of a scratch file");
  if (static_cast<uint64_t>(info.st_size) > max_bytes) {
    return absl::OutOfRangeError(
        absl::StrCat("it has ", info.st_size, " bytes, at most ", max_bytes, " are taken"));
  }
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count =
        ::pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return absl::DataLossError("it shrank while it was read");
    done += static_cast<size_t>(count);
  }
  return bytes;
}

absl::StatusOr<std::pair<UniqueFd, UniqueFd>> CreatePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe");
  return std::pair<UniqueFd, UniqueFd>(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

absl::StatusOr<std::pair<UniqueFd, UniqueFd>> CreateOutputPipe() {
  absl::StatusOr<std::pair<UniqueFd, UniqueFd>> ends = CreatePipe();
  if (ends.ok() && ::fcntl(ends->first.get(), F_SETFL, O_NONBLOCK) != 0)
    return ErrnoStatus(errno, "a pipe for a child's output");
  return ends;
}

std::string ReadPipe(int fd, size_t max_bytes) {
  std::string bytes(max_bytes, '\0');
  ssize_t count;
  do {
    count = ::read(fd, bytes.data(), bytes.size());
  } while (count < 0 && errno == EINTR);
  bytes.resize(count > 0 ? static_cast<size_t>(count) : 0);
  return bytes;
}

bool IsAbsolutePath(const std::string& path) { return path.starts_with("/"); }

bool IsDirectory(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

absl::Status CheckReadableFile(const std::string& path) {
  if (::access(path.c_str(), R_OK) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("cannot read ", path));
}

}  // namespace sluice::os
