// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/conformance/harness/fixtures.h"

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

class PipesTest : public PipeTest {
 protected:
  void SetUp() override {
    PipeTest::SetUp();
    if (DeviceValue<cl_bool>(device(), CL_DEVICE_PIPE_SUPPORT) != CL_TRUE)
      GTEST_SKIP() << "the device has no pipes (CL_DEVICE_PIPE_SUPPORT is false)";
  }
  Own<cl_mem> Pipe(cl_uint packet_bytes, cl_uint max_packets) const {
    return Own<cl_mem>(clCreatePipe(context(), 0, packet_bytes, max_packets, nullptr, nullptr));
  }
  Own<cl_program> Sender() const {
    return Program(
        "kernel void put(write_only pipe int p, global int* out) {"
        " int v = get_global_id(0); out[v] = write_pipe(p, &v); }",
        "-cl-std=CL3.0 -cl-kernel-arg-info");
  }
};

// A pipe has the sizes that it was asked for with; those that the device cannot have are refused by
// whoever knows.
TEST_F(PipesTest, Sizes) {
  const auto largest = DeviceValue<cl_uint>(device(), CL_DEVICE_PIPE_MAX_PACKET_SIZE);
  const Own<cl_mem> pipe =
      MAKE("clCreatePipe.largest_packet", clCreatePipe(context(), 0, largest, 3, nullptr, error));
  cl_uint value = 0;
  EXPECT_EQ(clGetPipeInfo(pipe, CL_PIPE_PACKET_SIZE, sizeof(value), &value, nullptr), CL_SUCCESS);
  EXPECT_EQ(value, largest);
  EXPECT_EQ(clGetPipeInfo(pipe, CL_PIPE_MAX_PACKETS, sizeof(value), &value, nullptr), CL_SUCCESS);
  EXPECT_EQ(value, 3u);
  EXPECT_CL("clGetPipeInfo.too_small", CL_INVALID_VALUE,
            clGetPipeInfo(pipe, CL_PIPE_MAX_PACKETS, 1, &value, nullptr));
  size_t bytes = 1;
  EXPECT_CL("clGetPipeInfo.properties", CL_SUCCESS,
            clGetPipeInfo(pipe, CL_PIPE_PROPERTIES, 0, nullptr, &bytes));
  EXPECT_EQ(bytes, 0u);
  EXPECT_CREATE("clCreatePipe.packet_too_large", CL_INVALID_PIPE_SIZE,
                clCreatePipe(context(), 0, largest + 1, 1, nullptr, error));
  // "CL_OUT_OF_RESOURCES if there is a failure to allocate resources required by the OpenCL
  // implementation on the device".
  EXPECT_CREATE(
      "clCreatePipe.larger_than_memory",
      (AnyOf{CL_OUT_OF_RESOURCES, CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY}),
      clCreatePipe(context(), 0, largest, 0xffffffff, nullptr, error));
}

// A pipe is a memory object of its own kind, that the host cannot touch.
TEST_F(PipesTest, IsAMemoryObject) {
  const Own<cl_mem> pipe = Pipe(4, 16);
  cl_mem_object_type type = 0;
  EXPECT_CL("clGetMemObjectInfo.type_of_pipe", CL_SUCCESS,
            clGetMemObjectInfo(pipe, CL_MEM_TYPE, sizeof(type), &type, nullptr));
  EXPECT_EQ(type, cl_mem_object_type{CL_MEM_OBJECT_PIPE});
  cl_context seen = nullptr;
  EXPECT_CL("clGetMemObjectInfo.context_of_pipe", CL_SUCCESS,
            clGetMemObjectInfo(pipe, CL_MEM_CONTEXT, sizeof(seen), &seen, nullptr));
  EXPECT_EQ(seen, context());
  EXPECT_CL("clRetainMemObject.pipe", CL_SUCCESS, clRetainMemObject(pipe));
  EXPECT_CL("clReleaseMemObject.pipe", CL_SUCCESS, clReleaseMemObject(pipe));
  if (!TheHarness().IsSluice()) return;  // A native driver may take it for a buffer.
  cl_int value = 0;
  EXPECT_CL("clEnqueueReadBuffer.pipe", CL_INVALID_MEM_OBJECT,
            clEnqueueReadBuffer(queue(), pipe, CL_TRUE, 0, 4, &value, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueCopyBuffer.pipe", CL_INVALID_MEM_OBJECT,
            clEnqueueCopyBuffer(queue(), pipe, Buffer(64), 0, 0, 4, 0, nullptr, nullptr));
}

// Only a pipe is an argument that is declared as one, and a pipe is no buffer.
TEST_F(PipesTest, Arguments) {
  const Own<cl_program> sender = Sender();
  const Own<cl_kernel> put = Kernel(sender, "put");
  const Own<cl_mem> pipe = Pipe(4, 16), buffer = Buffer(64);
  const auto set = [&put](cl_uint index, cl_mem memory) {
    return clSetKernelArg(put, index, sizeof(memory), &memory);
  };
  EXPECT_CL("clSetKernelArg.pipe", CL_SUCCESS, set(0, pipe));
  EXPECT_CL("clSetKernelArg.buffer_as_pipe", CL_INVALID_MEM_OBJECT, set(0, buffer));
  EXPECT_CL("clSetKernelArg.size_of_pipe", CL_INVALID_ARG_SIZE, clSetKernelArg(put, 0, 4, &pipe));
  if (TheHarness().IsSluice())
    EXPECT_CL("clSetKernelArg.pipe_as_buffer", CL_INVALID_MEM_OBJECT, set(1, pipe));
  cl_kernel_arg_type_qualifier type = 0;
  EXPECT_CL("clGetKernelArgInfo.type_qualifier_of_pipe", CL_SUCCESS,
            clGetKernelArgInfo(put, 0, CL_KERNEL_ARG_TYPE_QUALIFIER, sizeof(type), &type, nullptr));
  EXPECT_EQ(type, cl_kernel_arg_type_qualifier{CL_KERNEL_ARG_TYPE_PIPE});
  cl_kernel_arg_access_qualifier access = 0;
  EXPECT_CL(
      "clGetKernelArgInfo.access_qualifier_of_pipe", CL_SUCCESS,
      clGetKernelArgInfo(put, 0, CL_KERNEL_ARG_ACCESS_QUALIFIER, sizeof(access), &access, nullptr));
  EXPECT_EQ(access, cl_kernel_arg_access_qualifier{CL_KERNEL_ARG_ACCESS_WRITE_ONLY});
}

// A pipe has room for as many packets as it was asked for with.
TEST_F(PipesTest, HoldsWhatItHasRoomFor) {
  const Own<cl_program> sender = Sender();
  const Own<cl_kernel> put = Kernel(sender, "put");
  const Own<cl_mem> pipe = Pipe(4, 10), out = Buffer(16 * sizeof(cl_int));
  SetArg(put, 0, pipe);
  SetArg(put, 1, out);
  ASSERT_EQ(Launch(queue(), put, 16), CL_SUCCESS);
  const std::vector<cl_int> codes = Read<cl_int>(out, 16);
  EXPECT_EQ(std::count(codes.begin(), codes.end(), 0), 10);
}

}  // namespace
}  // namespace sluice::conformance
