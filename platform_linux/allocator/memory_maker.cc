// SPDX-License-Identifier: Apache-2.0
#include "daemon/allocator/memory_maker.h"

#include <fcntl.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/base/log.h"
#include "broker/os/lent_memory.h"
#include "proto/status_macros.h"

namespace sluice::allocator {
namespace {

constexpr char kMemoryName[] = "sluice-resource";
// Cached memory of the kernel's; "linux,cma" and vendors' heaps are small and special.
constexpr char kSystemHeap[] = "/dev/dma_heap/system";
constexpr char kUdmabuf[] = "/dev/udmabuf";

absl::StatusOr<MadeMemory> Only(absl::StatusOr<os::UniqueFd> fd, uint64_t size_bytes) {
  if (!fd.ok()) return fd.status();
  MadeMemory memory;
  memory.fds.push_back(*std::move(fd));
  memory.allocation_bytes = size_bytes;
  return memory;
}

uint64_t WholePages(uint64_t size_bytes) {
  const uint64_t page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return (size_bytes + page - 1) / page * page;
}

// A heap's memory is zeroed by the kernel, and holds the caller's pages at once.
absl::StatusOr<os::UniqueFd> FromHeap(int heap, uint64_t size_bytes) {
  dma_heap_allocation_data data = {};
  data.len = WholePages(size_bytes);
  data.fd_flags = O_RDWR | O_CLOEXEC;
  if (::ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &data) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("allocating from ", kSystemHeap));
  }
  return os::UniqueFd(static_cast<int>(data.fd));
}

// A dma-buf whose pages are a memfd's: fixed in size, zero.
absl::StatusOr<os::UniqueFd> FromUdmabuf(int device, uint64_t size_bytes) {
  ASSIGN_OR_RETURN(const os::UniqueFd pages,
                   os::CreateLentMemory(kMemoryName, WholePages(size_bytes)));
  udmabuf_create request = {};
  request.memfd = static_cast<uint32_t>(pages.get());
  request.flags = UDMABUF_FLAGS_CLOEXEC;
  request.size = WholePages(size_bytes);
  const int fd = ::ioctl(device, UDMABUF_CREATE, &request);
  if (fd < 0) return absl::ErrnoToStatus(errno, "creating a udmabuf");
  return os::UniqueFd(fd);
}

absl::StatusOr<MadeMemory> MakeDmaBuf(uint64_t size_bytes) {
  const os::UniqueFd heap(::open(kSystemHeap, O_RDONLY | O_CLOEXEC));
  if (heap.valid()) return Only(FromHeap(heap.get(), size_bytes), WholePages(size_bytes));
  const os::UniqueFd device(::open(kUdmabuf, O_RDWR | O_CLOEXEC));
  if (device.valid()) return Only(FromUdmabuf(device.get(), size_bytes), WholePages(size_bytes));
  return absl::UnimplementedError(absl::StrCat("the daemon's host has no dma-bufs: neither ",
                                               kSystemHeap, " nor ", kUdmabuf,
                                               " can be opened by its allocator"));
}

class LinuxMemoryMaker final : public MemoryMaker {
 public:
  absl::StatusOr<MadeMemory> Make(wire::ResourceBacking backing, uint64_t size_bytes) override;
  absl::StatusOr<MadeMemory> MakeTexture(const wire::AllocateTexture&) override {
    return absl::UnimplementedError(
        "Direct3D's textures are there on Windows only; take SLUICE_BACKING_VULKAN or "
        "SLUICE_BACKING_DMABUF");
  }

 private:
  absl::StatusOr<MadeMemory> MakeVulkan(uint64_t size_bytes);

  // Opened with the first need. A failure is kept: loading drivers again and again helps nobody.
  std::optional<absl::StatusOr<std::shared_ptr<os::ExternalMemoryDevice>>> vulkan_;
};

absl::StatusOr<MadeMemory> LinuxMemoryMaker::MakeVulkan(uint64_t size_bytes) {
  if (!vulkan_.has_value()) vulkan_ = os::ExternalMemoryDevice::OpenBest();
  if (!vulkan_->ok()) {
    return absl::UnimplementedError(absl::StrCat("the daemon's host has no Vulkan memory: ",
                                                 std::string(vulkan_->status().message())));
  }
  const os::ExternalMemoryDevice& device = ***vulkan_;
  ASSIGN_OR_RETURN(const std::unique_ptr<os::ExternalMemory> made,
                   device.AllocateBuffer(size_bytes, os::ExternalHandle::kOpaqueFd));
  absl::StatusOr<os::UniqueFd> fd = made->Export();  // Lives on without `made`.
  ASSIGN_OR_RETURN(MadeMemory memory, Only(std::move(fd), made->allocation_bytes()));
  memory.device_uuid = device.device_uuid();
  memory.driver_uuid = device.driver_uuid();
  const absl::StatusOr<uint64_t> offset = made->OffsetInDescriptor(memory.fds[0].get());
  if (offset.ok()) {
    memory.map_offset = *offset;
  } else {
    Log(LogLevel::kInfo, "allocator", "Vulkan's memory cannot be mapped by its users",
        {{"device", device.name()}, {"reason", std::string(offset.status().message())}});
  }
  return memory;
}

absl::StatusOr<MadeMemory> LinuxMemoryMaker::Make(wire::ResourceBacking backing,
                                                  uint64_t size_bytes) {
  switch (backing) {
    case wire::ResourceBacking::kMemfd:
    case wire::ResourceBacking::kGralloc:
      return Only(os::CreateLentMemory(kMemoryName, size_bytes), size_bytes);
    case wire::ResourceBacking::kDmaBuf:
      return MakeDmaBuf(size_bytes);
    case wire::ResourceBacking::kVulkan:
      return MakeVulkan(size_bytes);
    case wire::ResourceBacking::kAny:
    case wire::ResourceBacking::kImported:
    case wire::ResourceBacking::kD3d11:  // MakeTexture.
      break;
  }
  return absl::UnimplementedError(
      absl::StrCat("there is no backing ", static_cast<uint32_t>(backing)));
}

}  // namespace

std::unique_ptr<MemoryMaker> MemoryMaker::Create() { return std::make_unique<LinuxMemoryMaker>(); }

}  // namespace sluice::allocator
