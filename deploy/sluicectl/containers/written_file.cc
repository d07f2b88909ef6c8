// SPDX-License-Identifier: Apache-2.0
#include "deploy/sluicectl/containers/written_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "broker/os/file.h"

namespace sluice::ctl {
namespace {

absl::Status CannotWrite(int error, const std::string& path) {
  return absl::ErrnoToStatus(error, absl::StrCat("cannot write ", path));
}

absl::Status FillAndClose(os::UniqueFd fd, std::string_view bytes, mode_t mode,
                          const std::string& path) {
  const absl::Status written = os::WriteWhole(fd.get(), bytes);
  if (!written.ok())
    return absl::InternalError(absl::StrCat("cannot write ", path, ": ", written.message()));
  // Before it has its name: after a crash of the machine there is no empty file of that name.
  if (::fchmod(fd.get(), mode) != 0 || ::fsync(fd.get()) != 0) return CannotWrite(errno, path);
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteByRename(const std::string& path, std::string_view bytes, mode_t mode) {
  std::string temporary = path + ".XXXXXX";
  os::UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.valid()) return CannotWrite(errno, path);
  absl::Status status = FillAndClose(std::move(fd), bytes, mode, path);
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0)
    status = CannotWrite(errno, path);
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

absl::Status MakeFolder(const std::string& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(path, " is there, and is no folder"));
  }
  const size_t slash = path.find_last_not_of('/') == std::string::npos
                           ? std::string::npos
                           : path.rfind('/', path.find_last_not_of('/'));
  if (slash != std::string::npos && slash > 0) {
    if (absl::Status above = MakeFolder(path.substr(0, slash)); !above.ok()) return above;
  }
  if (::mkdir(path.c_str(), 0755) != 0 || ::chmod(path.c_str(), 0755) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make the folder ", path));
  return absl::OkStatus();
}

}  // namespace sluice::ctl
