// SPDX-License-Identifier: Apache-2.0
#include "broker/os/lent_memory.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "broker/os/file.h"
#include "broker/os/foreign_memory.h"
#include "broker/os/shared_memory.h"
#include "platform_linux/above_standard.h"
#include "platform_linux/errno_status.h"
#include "proto/status_macros.h"

namespace sluice::os {
namespace {

constexpr int kWriteSeals = F_SEAL_WRITE | F_SEAL_FUTURE_WRITE;
constexpr size_t kMostInfoBytes = 64 * 1024;

absl::StatusOr<UniqueFd> Duplicate(int fd) {
  UniqueFd duplicate = DuplicateFd(fd);
  if (!duplicate.valid()) return ErrnoStatus(errno, "duplicating a descriptor");
  return duplicate;
}

bool IsReadOnly(int fd) { return (::fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY; }

bool IsMemfd(int fd) { return ::fcntl(fd, F_GET_SEALS) >= 0; }  // Only files in memory have seals.

// Opens /proc's magic link, which leads to the file itself, without a path.
absl::StatusOr<UniqueFd> Reopen(int fd, int flags) {
  UniqueFd reopened = AboveStandard(
      UniqueFd(::open(absl::StrCat("/proc/self/fd/", fd).c_str(), flags | O_CLOEXEC)));
  if (!reopened.valid()) return ErrnoStatus(errno, "opening memory anew");
  return reopened;
}

// One more descriptor, with the rights of `fd`. A stranger's own memfd may not be the daemon's to
// open.
absl::StatusOr<UniqueFd> LendWhole(int fd) {
  if (IsMemfd(fd)) {
    absl::StatusOr<UniqueFd> reopened = Reopen(fd, O_RDWR);
    if (reopened.ok()) return reopened;
  }
  return Duplicate(fd);
}

// True if another open file of the memfd's inode is left, a mapping's among them: the kernel gives
// nobody a lease for writing then. If it does not say, nobody is taken to be left.
bool OthersHaveOpen(int memfd) {
  ::fcntl(memfd, F_SETSIG, SIGURG);  // Harmless, if somebody opens it meanwhile.
  if (::fcntl(memfd, F_SETLEASE, F_WRLCK) != 0) return errno == EAGAIN;
  ::fcntl(memfd, F_SETLEASE, F_UNLCK);
  return false;
}

// True if the inode's owner and mode let `user` open it for writing.
bool MayOpenForWriting(int fd, uid_t user) {
  struct stat info;
  if (::fstat(fd, &info) != 0) return true;
  return user == 0 || user == info.st_uid || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

// OK if it can be a memfd or a dma-buf. Asks the kernel alone: fstat and fstatfs ask the file
// system, which may be a stranger's and never answer.
absl::Status CheckIsMemory(int fd) {
  if (IsMemfd(fd)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const UniqueFd told, OpenForReading(absl::StrCat("/proc/self/fdinfo/", fd)));
  ASSIGN_OR_RETURN(const std::string info, ReadToEnd(told.get(), kMostInfoBytes));
  if (absl::StrContains(info, "\nexp_name:")) return absl::OkStatus();  // Only dma-bufs have it.
  return absl::InvalidArgumentError("the descriptor is neither a memfd nor a dma-buf");
}

absl::Status SealAgainstNewWriters(int fd) {
  if ((::fcntl(fd, F_GET_SEALS) & kWriteSeals) != 0) return absl::OkStatus();
  if (::fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "this memory cannot be sealed, and its reader could open it for writing: import memory "
      "without F_SEAL_SEAL, by a descriptor for writing, or say that readers are trusted");
}

}  // namespace

absl::StatusOr<UniqueFd> CreateLentMemory(const char* name, uint64_t size_bytes) {
  return CreateSharedMemory(name, size_bytes, Sealing::kMore);
}

absl::StatusOr<LentKind> CheckLentMemory(int fd, uint64_t size_bytes) {
  RETURN_IF_ERROR(CheckIsMemory(fd));
  ASSIGN_OR_RETURN(const ForeignMemory memory, DescribeForeignMemory(fd));
  if (!memory.mappable()) {
    return absl::InvalidArgumentError(
        "the memfd is not sealed against shrinking and growing (F_SEAL_SHRINK, F_SEAL_GROW)");
  }
  if (memory.size_bytes < size_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the memory has ", memory.size_bytes, " bytes, its shape needs ", size_bytes));
  }
  return memory.kind == ForeignMemoryKind::kDmaBuf ? LentKind::kDmaBuf : LentKind::kMemfd;
}

absl::Status CheckOpaqueMemory(int fd) {
  int type = 0;
  socklen_t size = sizeof(type);
  if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0) return absl::OkStatus();
  return absl::InvalidArgumentError("the descriptor is a socket");
}

absl::StatusOr<uint64_t> LentMemoryBytes(int fd) {
  ASSIGN_OR_RETURN(const ForeignMemory memory, DescribeForeignMemory(fd));
  return memory.size_bytes;
}

void TakeOverLentMemory(int fd, bool final_seals) {
  if (!IsMemfd(fd) || IsReadOnly(fd)) return;
  // Only root may take over another user's file; a user's own daemon has the user's own files.
  [[maybe_unused]] const int owned = ::fchown(fd, ::geteuid(), static_cast<gid_t>(-1));
  [[maybe_unused]] const int closed = ::fchmod(fd, 0600);
  if (final_seals) ::fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL);
}

absl::Status OpenOwnMemory(StrangersFds* fds) {
  for (UniqueFd& fd : fds->Take()) {
    if (IsMemfd(fd.get())) {
      ASSIGN_OR_RETURN(fd, Reopen(fd.get(), O_RDWR));
    }
    fds->push_back(std::move(fd));
  }
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> LendForWriting(int fd, LentKind kind) {
  if (kind != LentKind::kOpaque && IsReadOnly(fd)) {
    return absl::FailedPreconditionError("this memory was imported for reading only");
  }
  const int seals = kind == LentKind::kMemfd ? ::fcntl(fd, F_GET_SEALS) : 0;
  // Ours are F_SEAL_FUTURE_WRITE and F_SEAL_SEAL together.
  if ((seals & F_SEAL_WRITE) != 0 || (seals & (kWriteSeals | F_SEAL_SEAL)) == F_SEAL_FUTURE_WRITE) {
    return absl::FailedPreconditionError(
        "this memory is sealed against writing: it was when it was imported, or somebody who holds "
        "it has done so");
  }
  if ((seals & kWriteSeals) != 0) {
    return absl::FailedPreconditionError(
        "this memory is sealed against new writers, since a reader who could have reopened it has "
        "it: export for writing before that, or say at creation that readers are trusted");
  }
  return LendWhole(fd);
}

absl::StatusOr<UniqueFd> LendForReading(int fd, LentKind kind, uid_t reader, bool trusted) {
  if (kind == LentKind::kMemfd) {
    if (!trusted && MayOpenForWriting(fd, reader)) RETURN_IF_ERROR(SealAgainstNewWriters(fd));
    return Reopen(fd, O_RDONLY);
  }
  if (trusted || (kind == LentKind::kDmaBuf && IsReadOnly(fd))) return LendWhole(fd);
  return absl::FailedPreconditionError(
      "this kind of memory has no handle for reading only: only trusted readers can have it "
      "(trust_readers)");
}

RemainingHolders::RemainingHolders(StrangersFds own) {
  files_.reset(::epoll_create1(EPOLL_CLOEXEC));
  bool files = false;
  for (UniqueFd& fd : own.Take()) {
    if (IsMemfd(fd.get())) {
      memfds_.push_back(std::move(fd));
      continue;
    }
    // The kernel forgets it with the last descriptor of the file, and holds none itself.
    epoll_event nothing = {};
    if (::epoll_ctl(files_.get(), EPOLL_CTL_ADD, fd.get(), &nothing) == 0) files = true;
    CloseElsewhere(std::move(fd));
  }
  if (!files) files_.reset();
}

bool RemainingHolders::Any() const {
  for (const UniqueFd& fd : memfds_) {
    if (OthersHaveOpen(fd.get())) return true;
  }
  if (!files_.valid()) return false;
  const absl::StatusOr<UniqueFd> told =
      OpenForReading(absl::StrCat("/proc/self/fdinfo/", files_.get()));
  if (!told.ok()) return false;
  const absl::StatusOr<std::string> info = ReadToEnd(told->get(), kMostInfoBytes);
  return info.ok() && absl::StrContains(*info, "\ntfd:");
}

}  // namespace sluice::os
