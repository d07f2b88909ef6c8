// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/harness/gralloc_helpers.h"

#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#ifdef SLUICE_HAVE_CUTILS
#include <cutils/native_handle.h>
#endif

namespace sluice::conformance {
namespace {

constexpr size_t kPage = 4096;

#ifdef SLUICE_HAVE_CUTILS
void* MakeHandle(int fd) {
  native_handle_t* const handle = native_handle_create(1, 2);
  handle->data[0] = fd;
  handle->data[1] = 0x6772616c;  // As an implementation's magic number.
  handle->data[2] = 7;
  return handle;
}
void DeleteHandle(void* handle) { native_handle_delete(static_cast<native_handle_t*>(handle)); }
#else
void* MakeHandle(int fd) { return new int[6]{12, 1, 2, fd, 0x6772616c, 7}; }
void DeleteHandle(void* handle) { delete[] static_cast<int*>(handle); }
#endif

int MakeDmaBuf(int memfd, size_t bytes) {
  const int device = ::open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
  if (device < 0) return -1;
  udmabuf_create create = {};
  create.memfd = static_cast<__u32>(memfd);
  create.flags = UDMABUF_FLAGS_CLOEXEC;
  create.size = bytes;
  const int fd = ::ioctl(device, UDMABUF_CREATE, &create);
  ::close(device);
  return fd;
}

}  // namespace

const char* BackingName(Backing backing) {
  switch (backing) {
    case Backing::kSealed:
      return "Sealed";
    case Backing::kUnsealed:
      return "Unsealed";
    case Backing::kReadOnly:
      return "ReadOnly";
    case Backing::kDmaBuf:
      return "DmaBuf";
  }
  return "";
}

bool HasBacking(Backing backing) {
  return backing != Backing::kDmaBuf || ::access("/dev/udmabuf", R_OK | W_OK) == 0;
}

Allocation::Allocation(Backing backing, size_t bytes) : bytes_(bytes) {
  const size_t memory_bytes =
      backing == Backing::kDmaBuf ? (bytes + kPage - 1) / kPage * kPage : bytes;
  const int memfd = ::memfd_create("gralloc-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  EXPECT_EQ(::ftruncate(memfd, static_cast<off_t>(memory_bytes)), 0);
  mapped_ = ::mmap(nullptr, memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
  EXPECT_NE(mapped_, MAP_FAILED);
  std::vector<cl_uint> values(bytes / sizeof(cl_uint));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<cl_uint>(i * 2654435761u + 3);
  Write(values);
  fd_ = memfd;
  if (backing == Backing::kSealed) {
    EXPECT_EQ(::fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  }
  if (backing == Backing::kReadOnly) {
    EXPECT_EQ(::fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE), 0);
  }
  if (backing == Backing::kDmaBuf) {
    EXPECT_EQ(::fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    fd_ = MakeDmaBuf(memfd, memory_bytes);
    ::close(memfd);
    bytes_ = memory_bytes;
  }
  handle_ = MakeHandle(fd_);
}

Allocation::~Allocation() {
  DeleteHandle(handle_);
  ::close(fd_);
  ::munmap(mapped_, bytes_);
}

std::vector<cl_uint> Allocation::Read() const {
  std::vector<cl_uint> values(bytes_ / sizeof(cl_uint));
  std::memcpy(values.data(), mapped_, values.size() * sizeof(cl_uint));
  return values;
}

void Allocation::Write(const std::vector<cl_uint>& values) const {
  std::memcpy(mapped_, values.data(), values.size() * sizeof(cl_uint));
}

void WithGralloc::SetUp() {
  WithProgram::SetUp();
  if (HasFatalFailure() || IsSkipped()) return;
  clEnqueueAcquireGrallocObjectsIMG = Extension<SyncGralloc>("clEnqueueAcquireGrallocObjectsIMG");
  clEnqueueReleaseGrallocObjectsIMG = Extension<SyncGralloc>("clEnqueueReleaseGrallocObjectsIMG");
  if (HasDeviceExtension(device(), "cl_img_use_gralloc_ptr")) {
    ASSERT_NE(clEnqueueAcquireGrallocObjectsIMG, nullptr);
    ASSERT_NE(clEnqueueReleaseGrallocObjectsIMG, nullptr);
    return;
  }
  ASSERT_FALSE(TheHarness().IsSluice()) << "Sluice must have this extension";
  GTEST_SKIP() << "the driver has no cl_img_use_gralloc_ptr";
}

Own<cl_mem> WithGralloc::Import(const Allocation& allocation, cl_mem_flags flags) const {
  return MAKE(
      "clCreateBuffer.gralloc",
      clCreateBuffer(context(), flags | CL_MEM_USE_GRALLOC_PTR_IMG, 0, allocation.handle(), error));
}

cl_int WithGralloc::Acquire(cl_mem memory, cl_event* event) const {
  return clEnqueueAcquireGrallocObjectsIMG(queue(), 1, &memory, 0, nullptr, event);
}

cl_int WithGralloc::Release(cl_mem memory, cl_event* event) const {
  return clEnqueueReleaseGrallocObjectsIMG(queue(), 1, &memory, 0, nullptr, event);
}

cl_int WithGralloc::AddOne(cl_mem memory, size_t bytes) const {
  const Own<cl_kernel> kernel = Kernel("add_one");
  EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(memory), &memory), CL_SUCCESS);
  return Launch(queue(), kernel, bytes / sizeof(cl_int));
}

}  // namespace sluice::conformance
