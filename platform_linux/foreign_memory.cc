// SPDX-License-Identifier: Apache-2.0
#include "broker/os/foreign_memory.h"

#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "broker/os/scoped_handle.h"
#include "platform_linux/errno_status.h"

namespace sluice::os {
namespace {

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;
constexpr int kSealsAgainstWriting = F_SEAL_WRITE | F_SEAL_FUTURE_WRITE;

absl::StatusOr<uint64_t> DmaBufSize(int fd) {
  const off_t end = ::lseek(fd, 0, SEEK_END);
  if (end < 0) return ErrnoStatus(errno, "lseek of a dma-buf");
  ::lseek(fd, 0, SEEK_SET);  // As it was: a dma-buf's position means nothing.
  return static_cast<uint64_t>(end);
}

absl::Status DmaBufSync(int fd, uint64_t flags) {
  dma_buf_sync sync = {.flags = flags};
  int result;
  do {
    result = ::ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync);
  } while (result != 0 && (errno == EINTR || errno == EAGAIN));
  return result == 0 ? absl::OkStatus() : ErrnoStatus(errno, "DMA_BUF_IOCTL_SYNC");
}

uint64_t SyncFlags(bool writing) { return writing ? DMA_BUF_SYNC_RW : DMA_BUF_SYNC_READ; }

absl::Status CheckStillThere(int fd, uint64_t size) {
  struct stat info;
  if (::fstat(fd, &info) != 0) return ErrnoStatus(errno, "fstat of shared memory");
  if (info.st_size < 0 || static_cast<uint64_t>(info.st_size) < size) {
    return absl::OutOfRangeError(
        absl::StrCat("shared memory has shrunk to ", info.st_size, " of ", size, " bytes"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ForeignMemory> DescribeForeignMemory(int fd) {
  struct statfs file_system;
  if (::fstatfs(fd, &file_system) != 0) return ErrnoStatus(errno, "fstatfs of shared memory");
  const int mode = ::fcntl(fd, F_GETFL);
  if (mode < 0) return ErrnoStatus(errno, "fcntl of shared memory");
  // A privileged process may open it anew, and must not gain rights by it that the descriptor does
  // not have.
  if ((mode & O_PATH) != 0 || (mode & O_ACCMODE) == O_WRONLY) {
    return absl::InvalidArgumentError("the descriptor was not opened for reading");
  }
  ForeignMemory memory;
  memory.writable = (mode & O_ACCMODE) == O_RDWR;
  if (file_system.f_type == DMA_BUF_MAGIC) {
    const absl::StatusOr<uint64_t> size = DmaBufSize(fd);
    if (!size.ok()) return size.status();
    memory.kind = ForeignMemoryKind::kDmaBuf;
    memory.size_bytes = *size;
    return memory;
  }
  struct stat info;
  if (::fstat(fd, &info) != 0) return ErrnoStatus(errno, "fstat of shared memory");
  if (file_system.f_type != TMPFS_MAGIC || !S_ISREG(info.st_mode) || info.st_size < 0) {
    return absl::InvalidArgumentError(
        "the descriptor is neither a memfd of ordinary pages nor a dma-buf");
  }
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals >= 0 && (seals & kSizeSeals) == kSizeSeals) memory.kind = ForeignMemoryKind::kSealed;
  if (seals >= 0 && (seals & kSealsAgainstWriting) != 0) memory.writable = false;
  memory.size_bytes = static_cast<uint64_t>(info.st_size);
  return memory;
}

absl::Status CheckDeviceMemory(int fd) {
  struct stat info;
  if (::fstat(fd, &info) != 0) return ErrnoStatus(errno, "fstat of a device's memory");
  struct statfs file_system;
  if (::fstatfs(fd, &file_system) != 0) return ErrnoStatus(errno, "fstatfs of a device's memory");
  if (S_ISCHR(info.st_mode) || file_system.f_type == DMA_BUF_MAGIC) return absl::OkStatus();
  return absl::InvalidArgumentError("the descriptor is no device's");
}

absl::Status WaitForDevices(int fd, const ForeignMemory& memory, bool writing,
                            absl::Time deadline) {
  if (memory.kind != ForeignMemoryKind::kDmaBuf) return absl::OkStatus();
  // POLLIN: the writers have finished; POLLOUT: everybody has.
  pollfd wanted = {fd, static_cast<short>(writing ? POLLOUT : POLLIN), 0};
  while (true) {
    const int64_t left_ms = absl::ToInt64Milliseconds(deadline - absl::Now());
    const int ready = ::poll(&wanted, 1, static_cast<int>(std::clamp<int64_t>(left_ms, 0, 60'000)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return ErrnoStatus(errno, "poll of a dma-buf");
    if (ready > 0) return absl::OkStatus();
    if (absl::Now() >= deadline)
      return absl::DeadlineExceededError("other devices have not finished with a dma-buf");
  }
}

absl::Status BeginAccess(int fd, const ForeignMemory& memory, bool writing) {
  if (memory.kind != ForeignMemoryKind::kDmaBuf) return absl::OkStatus();
  return DmaBufSync(fd, DMA_BUF_SYNC_START | SyncFlags(writing));
}

absl::Status EndAccess(int fd, const ForeignMemory& memory, bool writing) {
  if (memory.kind != ForeignMemoryKind::kDmaBuf) return absl::OkStatus();
  return DmaBufSync(fd, DMA_BUF_SYNC_END | SyncFlags(writing));
}

absl::Status ReadForeignMemory(int fd, uint8_t* to, uint64_t size) {
  for (uint64_t done = 0; done < size;) {
    const ssize_t count = ::pread(fd, to + done, size - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoStatus(errno, "reading shared memory");
    if (count == 0) return absl::OutOfRangeError("shared memory has become smaller");
    done += static_cast<uint64_t>(count);
  }
  return absl::OkStatus();
}

absl::Status WriteForeignMemory(int fd, const uint8_t* from, uint64_t size) {
  // A write past the end would enlarge the file.
  if (absl::Status there = CheckStillThere(fd, size); !there.ok()) return there;
  UniqueFd opened;
  // With O_APPEND Linux writes at the end whatever the offset is: pwrite(2), BUGS.
  if ((::fcntl(fd, F_GETFL) & O_APPEND) != 0) {
    const std::string path = absl::StrCat("/proc/self/fd/", fd);
    opened = UniqueFd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!opened.valid())
      return ErrnoStatus(errno, "opening shared memory anew, for it has O_APPEND");
    fd = opened.get();
  }
  for (uint64_t done = 0; done < size;) {
    const ssize_t count = ::pwrite(fd, from + done, size - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoStatus(errno, "writing shared memory");
    done += static_cast<uint64_t>(count);
  }
  return absl::OkStatus();
}

}  // namespace sluice::os
