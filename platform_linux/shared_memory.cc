// SPDX-License-Identifier: Apache-2.0
#include "broker/os/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "platform_linux/above_standard.h"
#include "platform_linux/errno_status.h"

namespace sluice::os {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr int kFrozenSeals = kSizeSeals | F_SEAL_WRITE;

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

absl::StatusOr<UniqueFd> CreateMemfd(const char* name) {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  UniqueFd fd(::memfd_create(name, kFlags | MFD_NOEXEC_SEAL));
  // Kernels before 6.3 do not know the flag.
  if (!fd.valid() && errno == EINVAL) fd.reset(::memfd_create(name, kFlags));
  fd = AboveStandard(std::move(fd));
  if (!fd.valid()) return ErrnoStatus(errno, absl::StrCat("memfd_create(", name, ")"));
  return fd;
}

absl::Status CheckSeals(int fd, int wanted) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0) return ErrnoStatus(errno, "descriptor is not sealable shared memory");
  if ((seals & wanted) != wanted) {
    return absl::InvalidArgumentError(absl::StrCat("shared memory has seals 0x", absl::Hex(seals),
                                                   ", expected 0x", absl::Hex(wanted)));
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> SizeOf(int fd) {
  struct stat info;
  if (::fstat(fd, &info) != 0) return ErrnoStatus(errno, "fstat of shared memory");
  if (!S_ISREG(info.st_mode) || info.st_size < 0) {
    return absl::InvalidArgumentError("descriptor is not shared memory");
  }
  return static_cast<size_t>(info.st_size);
}

}  // namespace

absl::StatusOr<UniqueFd> CreateSharedMemory(const char* name, size_t size_bytes, Sealing sealing) {
  absl::StatusOr<UniqueFd> fd = CreateMemfd(name);
  if (!fd.ok()) return fd.status();
  if (::ftruncate(fd->get(), static_cast<off_t>(size_bytes)) != 0) {
    return ErrnoStatus(errno, absl::StrCat("shared memory of ", size_bytes, " bytes"));
  }
  const int seals = sealing == Sealing::kFinal ? kSizeSeals : kSizeSeals & ~F_SEAL_SEAL;
  if (::fcntl(fd->get(), F_ADD_SEALS, seals) != 0) {
    return ErrnoStatus(errno, "sealing shared memory");
  }
  return fd;
}

absl::Status VerifySharedMemory(int fd, size_t expected_size_bytes) {
  if (absl::Status sealed = CheckSeals(fd, kSizeSeals); !sealed.ok()) return sealed;
  const absl::StatusOr<size_t> size = SizeOf(fd);
  if (!size.ok()) return size.status();
  if (*size != expected_size_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("shared memory has ", *size, " bytes, expected ", expected_size_bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> CreateSealedCopy(const char* name, const void* data, size_t size_bytes) {
  absl::StatusOr<UniqueFd> fd = CreateMemfd(name);
  if (!fd.ok()) return fd.status();
  const char* bytes = static_cast<const char*>(data);
  for (size_t written = 0; written < size_bytes;) {
    const ssize_t count = ::write(fd->get(), bytes + written, size_bytes - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoStatus(errno, "writing shared memory");
    written += static_cast<size_t>(count);
  }
  if (::fcntl(fd->get(), F_ADD_SEALS, kFrozenSeals) != 0) {
    return ErrnoStatus(errno, "sealing shared memory");
  }
  return fd;
}

absl::StatusOr<std::string> ReadSealedCopy(int fd, size_t max_bytes) {
  if (absl::Status sealed = CheckSeals(fd, kFrozenSeals); !sealed.ok()) return sealed;
  const absl::StatusOr<size_t> size = SizeOf(fd);
  if (!size.ok()) return size.status();
  if (*size > max_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("sealed memory has ", *size, " bytes, at most ", max_bytes, " are taken"));
  }
  std::string bytes(*size, '\0');
  for (size_t done = 0; done < bytes.size();) {
    // pread: the file position is shared with everyone who holds a duplicate.
    const ssize_t count =
        ::pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoStatus(errno, "reading shared memory");
    if (count == 0) return absl::InternalError("sealed memory ended early");
    done += static_cast<size_t>(count);
  }
  return bytes;
}

SharedMapping::SharedMapping(SharedMapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

SharedMapping& SharedMapping::operator=(SharedMapping&& other) noexcept {
  if (this != &other) {
    if (data_ != nullptr) ::munmap(data_, size_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

void ZeroSharedMemory(int fd, uint8_t* data, uint64_t offset, uint64_t size) {
  constexpr uint64_t kWorthASystemCall = uint64_t{64} * 1024;
  if (size >= kWorthASystemCall &&
      ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                  static_cast<off_t>(size)) == 0) {
    return;
  }
  std::memset(data, 0, size);
}

SharedMapping::~SharedMapping() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

absl::StatusOr<SharedMapping> SharedMapping::Map(int fd, size_t size, bool writable,
                                                 void* fixed_address) {
  const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  const int flags = MAP_SHARED | (fixed_address != nullptr ? MAP_FIXED_NOREPLACE : 0);
  void* address = ::mmap(fixed_address, size, protection, flags, fd, 0);
  if (address == MAP_FAILED) {
    if (errno == EEXIST) return absl::AlreadyExistsError("that address is in use in this process");
    return ErrnoStatus(errno, absl::StrCat("mapping ", size, " bytes of shared memory"));
  }
  // From here the destructor unmaps, on every path.
  SharedMapping mapping(static_cast<uint8_t*>(address), size);
  // A kernel that does not know MAP_FIXED_NOREPLACE takes the address as a hint only.
  if (fixed_address != nullptr && address != fixed_address) {
    return absl::AlreadyExistsError("that address is in use in this process");
  }
  if (::madvise(address, size, MADV_DONTFORK) != 0) {
    return ErrnoStatus(errno, "madvise(MADV_DONTFORK)");
  }
  return mapping;
}

absl::StatusOr<OwnersMemory> CreateOwnersMemory(const char* name, size_t size_bytes) {
  absl::StatusOr<UniqueFd> fd = CreateSharedMemory(name, size_bytes, Sealing::kMore);
  if (!fd.ok()) return fd.status();
  absl::StatusOr<SharedMapping> mapping = SharedMapping::Map(fd->get(), size_bytes, true);
  if (!mapping.ok()) return mapping.status();
  // The mapping above stays writable. No descriptor of the memory can make another one, opened anew
  // or not.
  if (::fcntl(fd->get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0) {
    if (errno == EINVAL) return absl::UnimplementedError("Linux before 5.1 has no such memory");
    return ErrnoStatus(errno, "sealing shared memory");
  }
  return OwnersMemory{*std::move(fd), *std::move(mapping)};
}

}  // namespace sluice::os
