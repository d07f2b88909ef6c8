// SPDX-License-Identifier: Apache-2.0
//
// gralloc allocations for tests of cl_img_use_gralloc_ptr: native handles as Android's libraries
// pass them about, over memfds and, where the host has /dev/udmabuf, real dma-bufs. Where Debian's
// android-libcutils was there at build time, its native_handle_create makes the handles.
// Owner: the test. Thread: any, one at a time. Trust: none needed.
#pragma once

#include <CL/cl_ext.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "tests/conformance/harness/fixtures.h"

namespace sluice::conformance {

enum class Backing { kSealed, kUnsealed, kReadOnly, kDmaBuf };
const char* BackingName(Backing backing);
// False: the host cannot make one (no /dev/udmabuf).
bool HasBacking(Backing backing);

class Allocation {
 public:
  // Bytes 0, 1, 2, ... scaled, so that neighbours differ.
  Allocation(Backing backing, size_t bytes);
  ~Allocation();
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  void* handle() const { return handle_; }  // The buffer_handle_t.
  int fd() const { return fd_; }
  // The view of another holder of the memory.
  std::vector<cl_uint> Read() const;
  void Write(const std::vector<cl_uint>& values) const;
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_;
  int fd_ = -1;
  void* mapped_ = nullptr;
  void* handle_ = nullptr;
};

using SyncGralloc = cl_int(CL_API_CALL*)(cl_command_queue, cl_uint, const cl_mem*, cl_uint,
                                         const cl_event*, cl_event*);

class WithGralloc : public WithProgram {
 protected:
  void SetUp() override;

  Own<cl_mem> Import(const Allocation& allocation, cl_mem_flags flags = CL_MEM_READ_WRITE) const;
  // One object, no wait list.
  cl_int Acquire(cl_mem memory, cl_event* event = nullptr) const;
  cl_int Release(cl_mem memory, cl_event* event = nullptr) const;
  // add_one over the whole allocation.
  cl_int AddOne(cl_mem memory, size_t bytes) const;

  SyncGralloc clEnqueueAcquireGrallocObjectsIMG = nullptr;
  SyncGralloc clEnqueueReleaseGrallocObjectsIMG = nullptr;
};

}  // namespace sluice::conformance
