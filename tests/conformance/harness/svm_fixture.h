// SPDX-License-Identifier: Apache-2.0
// Coarse-grained shared virtual memory, where the device reports it.
#pragma once

#include <algorithm>

#include "tests/conformance/harness/fixtures.h"

#define REQUIRE_SVM()                                     \
  if (!HasSvm())                                          \
  GTEST_SKIP() << "the device has no coarse-grained SVM " \
                  "(CL_DEVICE_SVM_CAPABILITIES)"

namespace sluice::conformance {

class WithSvm : public WithProgram {
 protected:
  static constexpr size_t kCount = 1024, kBytes = kCount * sizeof(cl_int);

  cl_int* Alloc() const {
    void* memory = clSVMAlloc(context(), CL_MEM_READ_WRITE, kBytes, 0);
    EXPECT_CL("clSVMAlloc.plain", CL_SUCCESS, memory != nullptr ? CL_SUCCESS : CL_INVALID_VALUE);
    return static_cast<cl_int*>(memory);
  }
  cl_int Map(void* memory, cl_map_flags flags) const {
    return clEnqueueSVMMap(queue(), CL_TRUE, flags, memory, kBytes, 0, nullptr, nullptr);
  }
  cl_int Unmap(void* memory) const {
    return clEnqueueSVMUnmap(queue(), memory, 0, nullptr, nullptr);
  }
  // The host's writes to shared memory that it has mapped, and its reads there. Blocking.
  void Store(cl_int* memory, const std::vector<cl_int>& values) const {
    const size_t bytes = values.size() * sizeof(cl_int);
    ASSERT_EQ(clEnqueueSVMMap(queue(), CL_TRUE, CL_MAP_WRITE, memory, bytes, 0, nullptr, nullptr),
              CL_SUCCESS);
    std::copy(values.begin(), values.end(), memory);
    ASSERT_EQ(Unmap(memory), CL_SUCCESS);
    Finish();
  }
  void Fill(cl_int* memory, size_t count, cl_int value) const {
    Store(memory, std::vector<cl_int>(count, value));
  }
  std::vector<cl_int> Load(cl_int* memory, size_t count) const {
    EXPECT_EQ(clEnqueueSVMMap(queue(), CL_TRUE, CL_MAP_READ, memory, count * sizeof(cl_int), 0,
                              nullptr, nullptr),
              CL_SUCCESS);
    std::vector<cl_int> values(memory, memory + count);
    EXPECT_EQ(Unmap(memory), CL_SUCCESS);
    return values;
  }
};

}  // namespace sluice::conformance
