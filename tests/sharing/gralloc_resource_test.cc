// SPDX-License-Identifier: Apache-2.0
// Resources of the daemon's with gralloc backing, handed to OpenCL as Android hands its buffers on
// (cl_img_use_gralloc_ptr): a native_handle_t made of the exported descriptor and ints.
#include <CL/cl_ext.h>

#include <algorithm>

#include "tests/sharing/shared_resource_fixture.h"

namespace sluice::gltest {
namespace {

constexpr uint64_t kAllocationBytes = 4096;

using GrallocResources = SharedResources;

// A kernel's queue reads and fills what the daemon allocated, and the program that made it sees
// that; the size is the allocation's. Also over a network, where only the client has it.
TEST_F(GrallocResources, HandleIsPassedOn) {
  using Sync = cl_int(CL_API_CALL*)(cl_command_queue, cl_uint, const cl_mem*, cl_uint,
                                    const cl_event*, cl_event*);
  const auto acquire = Extension<Sync>("clEnqueueAcquireGrallocObjectsIMG");
  const auto release = Extension<Sync>("clEnqueueReleaseGrallocObjectsIMG");
  ASSERT_TRUE(acquire != nullptr && release != nullptr);
  const Made made = MakeBuffer(kAllocationBytes, SLUICE_BACKING_GRALLOC);
  sluice_handle exported = {};
  exported.struct_size = sizeof(exported);
  ASSERT_EQ(sluice_export(daemon_, &made.write, SLUICE_WRITE, &exported), SLUICE_OK);
  ASSERT_EQ(exported.fd_count, 1u);
  ASSERT_GT(exported.int_count, 0u);
  void* mapped = nullptr;
  ASSERT_EQ(sluice_map(&exported, &mapped), SLUICE_OK);
  auto* const words = static_cast<cl_uint*>(mapped);
  words[3] = 0x01020304;
  struct {
    int version = 3 * sizeof(int);
    int fds = 1;
    int ints = 0;
    int data[1 + SLUICE_MAX_INTS] = {};
  } handle;
  handle.ints = static_cast<int>(exported.int_count);
  handle.data[0] = exported.fds[0];
  std::copy_n(exported.ints, exported.int_count, handle.data + 1);
  const Own<cl_mem> memory = MAKE(
      "clCreateBuffer.gralloc_of_the_daemon",
      clCreateBuffer(context(), CL_MEM_READ_WRITE | CL_MEM_USE_GRALLOC_PTR_IMG, 0, &handle, error));
  sluice_handle_close(&exported);
  ASSERT_NE(memory.get(), nullptr);
  size_t bytes = 0;
  ASSERT_EQ(clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof(bytes), &bytes, nullptr), CL_SUCCESS);
  EXPECT_EQ(bytes, kAllocationBytes);
  const cl_mem object = memory;
  ASSERT_EQ(acquire(queue(), 1, &object, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(Read<cl_uint>(memory, 4)[3], 0x01020304u);
  const cl_uint value = 0x0a0b0c0d;
  ASSERT_EQ(clEnqueueFillBuffer(queue(), memory, &value, sizeof(value), 0, kAllocationBytes, 0,
                                nullptr, nullptr),
            CL_SUCCESS);
  ASSERT_EQ(release(queue(), 1, &object, 0, nullptr, nullptr), CL_SUCCESS);
  Finish();
  EXPECT_EQ(words[0], value);
  EXPECT_EQ(words[kAllocationBytes / 4 - 1], value);
  sluice_unmap(mapped, kAllocationBytes);
}

}  // namespace
}  // namespace sluice::gltest
