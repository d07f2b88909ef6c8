// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/conformance/fixtures.h"

namespace sluice::conformance {
namespace {

using PipeTest = WithQueue;

// A pipe is made and told, and moves packets between kernels, where the device has pipes.
TEST_F(PipeTest, CreatesAndTells) {
  EXPECT_CREATE("clCreatePipe.null_context", CL_INVALID_CONTEXT,
                clCreatePipe(nullptr, 0, 4, 16, nullptr, error));
  const Own<cl_mem> buffer = Buffer(64);
  cl_uint value = 0;
  EXPECT_CL("clGetPipeInfo.null", CL_INVALID_MEM_OBJECT,
            clGetPipeInfo(nullptr, CL_PIPE_PACKET_SIZE, sizeof(value), &value, nullptr));
  EXPECT_CL("clGetPipeInfo.buffer", CL_INVALID_MEM_OBJECT,
            clGetPipeInfo(buffer, CL_PIPE_PACKET_SIZE, sizeof(value), &value, nullptr));
  if (DeviceValue<cl_bool>(device(), CL_DEVICE_PIPE_SUPPORT) != CL_TRUE) {
    EXPECT_CREATE("clCreatePipe.unsupported", CL_INVALID_OPERATION,
                  clCreatePipe(context(), CL_MEM_READ_WRITE, 4, 16, nullptr, error));
    GTEST_SKIP() << "the device has no pipes (CL_DEVICE_PIPE_SUPPORT is false)";
  }
  EXPECT_CREATE("clCreatePipe.zero_packet", CL_INVALID_PIPE_SIZE,
                clCreatePipe(context(), CL_MEM_READ_WRITE, 0, 16, nullptr, error));
  EXPECT_CREATE("clCreatePipe.zero_packets", CL_INVALID_PIPE_SIZE,
                clCreatePipe(context(), CL_MEM_READ_WRITE, 4, 0, nullptr, error));
  EXPECT_CREATE("clCreatePipe.unknown_flag", CL_INVALID_VALUE,
                clCreatePipe(context(), cl_mem_flags{1} << 40, 4, 16, nullptr, error));
  const cl_pipe_properties some[] = {1, 1, 0};
  EXPECT_CREATE("clCreatePipe.properties", CL_INVALID_VALUE,
                clCreatePipe(context(), CL_MEM_READ_WRITE, 4, 16, some, error));
  const Own<cl_mem> pipe =
      MAKE("clCreatePipe.plain", clCreatePipe(context(), CL_MEM_READ_WRITE, 4, 16, nullptr, error));
  EXPECT_CL("clGetPipeInfo.packet_size", CL_SUCCESS,
            clGetPipeInfo(pipe, CL_PIPE_PACKET_SIZE, sizeof(value), &value, nullptr));
  EXPECT_EQ(value, 4u);
  EXPECT_CL("clGetPipeInfo.max_packets", CL_SUCCESS,
            clGetPipeInfo(pipe, CL_PIPE_MAX_PACKETS, sizeof(value), &value, nullptr));
  EXPECT_EQ(value, 16u);
  EXPECT_CL("clGetPipeInfo.unknown", CL_INVALID_VALUE,
            clGetPipeInfo(pipe, 0x7ffe, sizeof(value), &value, nullptr));
  const Own<cl_program> program = Program(
      "kernel void put(write_only pipe int p) { int v = get_global_id(0); write_pipe(p, &v); }"
      "kernel void take(read_only pipe int p, global int* out) { int v = -1; read_pipe(p, &v);"
      " out[get_global_id(0)] = v; }",
      "-cl-std=CL3.0");
  const Own<cl_kernel> put = Kernel(program, "put"), take = Kernel(program, "take");
  const Own<cl_mem> out = Buffer(16 * sizeof(cl_int));
  SetArg(put, 0, pipe);
  SetArg(take, 0, pipe);
  SetArg(take, 1, out);
  ASSERT_EQ(Launch(queue(), put, 16), CL_SUCCESS);
  ASSERT_EQ(Launch(queue(), take, 16), CL_SUCCESS);
  std::vector<cl_int> seen = Read<cl_int>(out, 16);
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, Counting(16));
}

}  // namespace
}  // namespace sluice::conformance
