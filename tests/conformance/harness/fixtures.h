// SPDX-License-Identifier: Apache-2.0
//
// Fixtures named after the state that a test starts from. Their helpers check their own calls, so
// that a test reads as what it is about. Owner: each test has its own context, queue and program;
// nothing is shared between tests. Thread: the test's, but the helpers that only call OpenCL may be
// used from any. Trust: none needed.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "tests/conformance/harness/expect.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/harness/own.h"

namespace sluice::conformance {

class WithPlatform : public testing::Test {
 protected:
  cl_platform_id platform() const { return TheHarness().platform; }
  cl_device_id device() const { return TheHarness().device; }
  bool HasImages() const {
    return DeviceValue<cl_bool>(device(), CL_DEVICE_IMAGE_SUPPORT) == CL_TRUE;
  }
  bool HasOutOfOrder() const;
  // Coarse-grained.
  bool HasSvm() const {
    return (DeviceValue<cl_device_svm_capabilities>(device(), CL_DEVICE_SVM_CAPABILITIES) &
            CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) != 0;
  }
  // OpenCL C code that prints, uses images and so on is only as new as every 3.0 device must take.
  bool HasCompiler() const {
    return DeviceValue<cl_bool>(device(), CL_DEVICE_COMPILER_AVAILABLE) == CL_TRUE;
  }
  // The address of an extension's function, or nullptr.
  template <typename Function>
  Function Extension(const char* name) const {
    return reinterpret_cast<Function>(clGetExtensionFunctionAddressForPlatform(platform(), name));
  }
  Own<cl_context> NewContext() const;
};

class WithContext : public WithPlatform {
 protected:
  void SetUp() override;
  cl_context context() const { return context_; }

  Own<cl_mem> Buffer(size_t bytes, cl_mem_flags flags = CL_MEM_READ_WRITE,
                     void* host = nullptr) const;
  Own<cl_event> UserEvent() const;
  Own<cl_command_queue> Queue(cl_command_queue_properties properties = 0) const;
  // Built for the device; a failure prints the log.
  Own<cl_program> Program(const std::string& source, const char* options = "") const;
  Own<cl_kernel> Kernel(cl_program program, const char* name) const;

 private:
  Own<cl_context> context_;
};

class WithQueue : public WithContext {
 protected:
  void SetUp() override;
  // In order, profiling on.
  cl_command_queue queue() const { return queue_; }
  void MakeQueue();  // A new one.
  void Finish() const { EXPECT_EQ(clFinish(queue_), CL_SUCCESS); }

  template <typename T>
  std::vector<T> Read(cl_mem buffer, size_t count, size_t first = 0) const {
    std::vector<T> values(count);
    EXPECT_EQ(clEnqueueReadBuffer(queue_, buffer, CL_TRUE, first * sizeof(T), count * sizeof(T),
                                  values.data(), 0, nullptr, nullptr),
              CL_SUCCESS);
    return values;
  }
  template <typename T>
  void Write(cl_mem buffer, const std::vector<T>& values, size_t first = 0) const {
    EXPECT_EQ(clEnqueueWriteBuffer(queue_, buffer, CL_TRUE, first * sizeof(T),
                                   values.size() * sizeof(T), values.data(), 0, nullptr, nullptr),
              CL_SUCCESS);
  }
  template <typename T>
  Own<cl_mem> BufferOf(const std::vector<T>& values, cl_mem_flags flags = CL_MEM_READ_WRITE) const {
    return Buffer(values.size() * sizeof(T), flags | CL_MEM_COPY_HOST_PTR,
                  const_cast<T*>(values.data()));
  }

 private:
  Own<cl_command_queue> queue_;
};

// The kernels that most tests need, built once per test (drivers cache the build).
class WithProgram : public WithQueue {
 protected:
  void SetUp() override;
  cl_program program() const { return program_; }
  using WithQueue::Kernel;
  Own<cl_kernel> Kernel(const char* name) const { return Kernel(program_, name); }

 private:
  Own<cl_program> program_;
};

// Source of WithProgram's kernels.
extern const char kKernels[];

// first, first + 1, ...
template <typename T = cl_int>
std::vector<T> Counting(size_t count, T first = 0) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

// CL_EVENT_COMMAND_EXECUTION_STATUS.
cl_int StatusOf(cl_event event);

// Sets one kernel argument and checks the answer.
template <typename T>
void SetArg(cl_kernel kernel, cl_uint index, const T& value) {
  EXPECT_EQ(clSetKernelArg(kernel, index, sizeof(value), &value), CL_SUCCESS)
      << "argument " << index;
}
inline void SetArg(cl_kernel kernel, cl_uint index, const Own<cl_mem>& value) {
  cl_mem handle = value.get();
  EXPECT_EQ(clSetKernelArg(kernel, index, sizeof(handle), &handle), CL_SUCCESS)
      << "argument " << index;
}

// One-dimensional launch with no wait list.
cl_int Launch(cl_command_queue queue, cl_kernel kernel, size_t global, cl_event* event = nullptr);

}  // namespace sluice::conformance
