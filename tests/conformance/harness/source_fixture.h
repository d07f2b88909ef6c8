// SPDX-License-Identifier: Apache-2.0
// The start of the tests of programs: a device with a compiler, and sources. Owner: each test has
// its own. Thread: the test's.
#pragma once

#include "tests/conformance/harness/fixtures.h"

namespace sluice::conformance {

class WithSource : public WithQueue {
 protected:
  void SetUp() override {
    WithQueue::SetUp();
    if (!HasCompiler())
      GTEST_SKIP() << "the device has no compiler (CL_DEVICE_COMPILER_AVAILABLE is false)";
  }
  Own<cl_program> Source(const char* text) const {
    return MAKE("clCreateProgramWithSource.plain",
                clCreateProgramWithSource(context(), 1, &text, nullptr, error));
  }
  cl_int Compile(cl_program program, const char* options = "") const {
    const cl_device_id one = device();
    return clCompileProgram(program, 1, &one, options, 0, nullptr, nullptr, nullptr, nullptr);
  }
  // Runs the program's kernel "k" on one int and returns the int.
  cl_int RunK(cl_program program) const {
    const Own<cl_kernel> kernel = Kernel(program, "k");
    const Own<cl_mem> out = BufferOf(std::vector<cl_int>(1, -1));
    SetArg(kernel, 0, out);
    EXPECT_EQ(Launch(queue(), kernel, 1), CL_SUCCESS);
    return Read<cl_int>(out, 1)[0];
  }
};

}  // namespace sluice::conformance
