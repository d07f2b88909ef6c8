// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/harness/fixtures.h"

namespace sluice::conformance {
namespace {

using KernelArgTest = WithProgram;

struct Mixed {
  cl_int a;
  cl_float b;
  cl_char c;
};

// Values of every size, vectors and structures arrive as they were set.
TEST_F(KernelArgTest, ValuesArrive) {
  const Own<cl_kernel> kernel = Kernel("sum_args");
  const Own<cl_mem> out = Buffer(12 * sizeof(cl_float));
  SetArg(kernel, 0, out);
  SetArg(kernel, 1, cl_char{-3});
  SetArg(kernel, 2, cl_short{-300});
  SetArg(kernel, 3, cl_int{70000});
  SetArg(kernel, 4, cl_long{-5000000});
  SetArg(kernel, 5, cl_float{1.5f});
  SetArg(kernel, 6, Mixed{11, 12.5f, 13});
  SetArg(kernel, 7, cl_float4{{1, 2, 3, 4}});
  ASSERT_EQ(Launch(queue(), kernel, 1), CL_SUCCESS);
  EXPECT_EQ(Read<cl_float>(out, 12),
            (std::vector<cl_float>{-3, -300, 70000, -5000000, 1.5f, 11, 12.5f, 13, 1, 2, 3, 4}));
}

// A structure is a value also where its type is called like an image's, whatever its bytes are.
TEST_F(KernelArgTest, StructuresNamedLikeImages) {
  const Own<cl_program> program = Program(
      "typedef struct { int width; int height; } image_desc_t;"
      "kernel void k(global int* out, image_desc_t desc, global const image_desc_t* more) "
      "{ out[0] = desc.width; out[1] = desc.height; out[2] = more->width; }");
  const Own<cl_kernel> kernel = Kernel(program, "k");
  const Own<cl_mem> out = Buffer(3 * sizeof(cl_int));
  const Own<cl_mem> more = BufferOf(std::vector<cl_int>{7, 8});
  SetArg(kernel, 0, out);
  SetArg(kernel, 1, cl_int2{{640, 480}});
  SetArg(kernel, 2, more);
  ASSERT_EQ(Launch(queue(), kernel, 1), CL_SUCCESS);
  EXPECT_EQ(Read<cl_int>(out, 3), (std::vector<cl_int>{640, 480, 7}));
}

// The value is taken when it is set; what happens to the caller's memory afterwards does not
// matter.
TEST_F(KernelArgTest, ValuesAreCopiedAtOnce) {
  const Own<cl_kernel> kernel = Kernel("fill_int");
  const Own<cl_mem> out = Buffer(16 * sizeof(cl_int));
  SetArg(kernel, 0, out);
  cl_int value = 5;
  ASSERT_CL("clSetKernelArg.value", CL_SUCCESS, clSetKernelArg(kernel, 1, sizeof(value), &value));
  value = 6;
  ASSERT_EQ(Launch(queue(), kernel, 16), CL_SUCCESS);
  EXPECT_EQ(Read<cl_int>(out, 16), std::vector<cl_int>(16, 5));
}

// A launch uses the arguments as they were when it was enqueued, also if it waits.
TEST_F(KernelArgTest, LaunchesKeepTheirArguments) {
  const Own<cl_kernel> kernel = Kernel("fill_int");
  const Own<cl_mem> first = Buffer(16 * sizeof(cl_int));
  const Own<cl_mem> second = Buffer(16 * sizeof(cl_int));
  const Own<cl_event> gate = UserEvent();
  const size_t global = 16;
  SetArg(kernel, 0, first);
  SetArg(kernel, 1, cl_int{1});
  ASSERT_EQ(clEnqueueNDRangeKernel(queue(), kernel, 1, nullptr, &global, nullptr, 1, gate.AsList(),
                                   nullptr),
            CL_SUCCESS);
  SetArg(kernel, 0, second);
  SetArg(kernel, 1, cl_int{2});
  ASSERT_EQ(Launch(queue(), kernel, 16), CL_SUCCESS);
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  EXPECT_EQ(Read<cl_int>(first, 16), std::vector<cl_int>(16, 1));
  EXPECT_EQ(Read<cl_int>(second, 16), std::vector<cl_int>(16, 2));
}

// An argument may be set again without touching the others, many times over.
TEST_F(KernelArgTest, ArgumentsAreKeptBetweenLaunches) {
  const Own<cl_kernel> kernel = Kernel("fill_int");
  const Own<cl_mem> out = Buffer(64 * sizeof(cl_int));
  SetArg(kernel, 0, out);
  for (cl_int i = 0; i < 64; ++i) {
    SetArg(kernel, 1, i);
    const size_t offset = static_cast<size_t>(i), one = 1;
    ASSERT_EQ(
        clEnqueueNDRangeKernel(queue(), kernel, 1, &offset, &one, nullptr, 0, nullptr, nullptr),
        CL_SUCCESS);
  }
  EXPECT_EQ(Read<cl_int>(out, 64), Counting(64));
}

// A queue on the device is an argument like another, for a kernel that enqueues; a queue of the
// host's is none, nor is anything else (section 5.9.2: CL_INVALID_DEVICE_QUEUE).
TEST_F(KernelArgTest, DeviceQueues) {
  if (DeviceValue<cl_uint>(device(), CL_DEVICE_MAX_ON_DEVICE_QUEUES) == 0)
    GTEST_SKIP() << "the device has no device queues";
  const cl_queue_properties list[] = {
      CL_QUEUE_PROPERTIES, CL_QUEUE_ON_DEVICE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0};
  const Own<cl_command_queue> on_device(
      clCreateCommandQueueWithProperties(context(), device(), list, nullptr));
  ASSERT_NE(on_device.get(), nullptr);
  // A device of OpenCL 3.0 need not take the language of 2.0.
  const bool is_2 = DeviceString(device(), CL_DEVICE_VERSION).rfind("OpenCL 2.", 0) == 0;
  const Own<cl_program> source = Program(
      "kernel void k(queue_t q, global int* out) {"
      " out[0] = enqueue_kernel(q, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), ^{ out[1] = 7; }); }",
      is_2 ? "-cl-std=CL2.0" : "-cl-std=CL3.0");
  const Own<cl_kernel> kernel = Kernel(source, "k");
  const auto set = [&kernel](cl_command_queue value) {
    return clSetKernelArg(kernel, 0, sizeof(value), &value);
  };
  const Own<cl_mem> out = BufferOf(std::vector<cl_int>{1, 1});
  SetArg(kernel, 1, out);
  EXPECT_CL("clSetKernelArg.host_queue", CL_INVALID_DEVICE_QUEUE, set(queue()));
  EXPECT_CL("clSetKernelArg.no_queue", CL_INVALID_DEVICE_QUEUE, set(nullptr));
  EXPECT_CL("clSetKernelArg.size_of_queue", CL_INVALID_ARG_SIZE,
            clSetKernelArg(kernel, 0, 4, on_device.AsList()));
  EXPECT_CL("clEnqueueNDRangeKernel.queue_not_set", CL_INVALID_KERNEL_ARGS,
            Launch(queue(), kernel, 1));
  EXPECT_CL("clSetKernelArg.device_queue", CL_SUCCESS, set(on_device));
  ASSERT_EQ(Launch(queue(), kernel, 1), CL_SUCCESS);
  EXPECT_EQ(Read<cl_int>(out, 2), (std::vector<cl_int>{0, 7}));
}

// A null buffer is an argument like another: the kernel sees a null pointer.
TEST_F(KernelArgTest, NullBuffersAreNullPointers) {
  const Own<cl_program> source = Program(
      "kernel void k(global int* out, global int* maybe, constant int* also) "
      "{ out[0] = maybe == 0; out[1] = also == 0; }");
  const Own<cl_kernel> kernel = Kernel(source, "k");
  const Own<cl_mem> out = BufferOf(std::vector<cl_int>{-1, -1});
  SetArg(kernel, 0, out);
  const cl_mem none = nullptr;
  EXPECT_CL("clSetKernelArg.null_buffer", CL_SUCCESS,
            clSetKernelArg(kernel, 1, sizeof(none), &none));
  EXPECT_CL("clSetKernelArg.null_value", CL_SUCCESS,
            clSetKernelArg(kernel, 2, sizeof(none), nullptr));
  ASSERT_CL("clEnqueueNDRangeKernel.null_buffers", CL_SUCCESS, Launch(queue(), kernel, 1));
  EXPECT_EQ(Read<cl_int>(out, 2), (std::vector<cl_int>{1, 1}));
}

// Constant memory and local memory reach the kernel.
TEST_F(KernelArgTest, ConstantAndLocalMemory) {
  const Own<cl_kernel> scale = Kernel("scale_by_table");
  const Own<cl_mem> data = BufferOf(Counting(16));
  const Own<cl_mem> table = BufferOf(std::vector<cl_int>{1, 10, 100, 1000}, CL_MEM_READ_ONLY);
  SetArg(scale, 0, data);
  SetArg(scale, 1, table);
  ASSERT_EQ(Launch(queue(), scale, 16), CL_SUCCESS);
  EXPECT_EQ(Read<cl_int>(data, 5), (std::vector<cl_int>{0, 10, 200, 3000, 4}));
  const Own<cl_kernel> reverse = Kernel("reverse_groups");
  Write(data, Counting(16));
  SetArg(reverse, 0, data);
  EXPECT_CL("clSetKernelArg.local", CL_SUCCESS,
            clSetKernelArg(reverse, 1, 4 * sizeof(cl_int), nullptr));
  const size_t global = 16, local = 4;
  ASSERT_EQ(
      clEnqueueNDRangeKernel(queue(), reverse, 1, nullptr, &global, &local, 0, nullptr, nullptr),
      CL_SUCCESS);
  EXPECT_EQ(Read<cl_int>(data, 8), (std::vector<cl_int>{3, 2, 1, 0, 7, 6, 5, 4}));
}

// Each wrong argument of clSetKernelArg has its code.
TEST_F(KernelArgTest, Refusals) {
  const Own<cl_kernel> kernel = Kernel("fill_int");
  const Own<cl_mem> buffer = Buffer(64);
  const cl_mem handle = buffer;
  const cl_int value = 0;
  char large[64] = {};
  EXPECT_CL("clSetKernelArg.null_kernel", CL_INVALID_KERNEL,
            clSetKernelArg(nullptr, 0, sizeof(handle), &handle));
  EXPECT_CL("clSetKernelArg.index", CL_INVALID_ARG_INDEX,
            clSetKernelArg(kernel, 2, sizeof(value), &value));
  EXPECT_CL("clSetKernelArg.value_too_small", CL_INVALID_ARG_SIZE,
            clSetKernelArg(kernel, 1, 1, &value));
  EXPECT_CL("clSetKernelArg.value_too_large", CL_INVALID_ARG_SIZE,
            clSetKernelArg(kernel, 1, sizeof(large), large));
  EXPECT_CL("clSetKernelArg.value_null", CL_INVALID_ARG_VALUE,
            clSetKernelArg(kernel, 1, sizeof(value), nullptr));
  EXPECT_CL("clSetKernelArg.buffer_wrong_size", CL_INVALID_ARG_SIZE,
            clSetKernelArg(kernel, 0, 4, &handle));
  const Own<cl_kernel> local = Kernel("reverse_groups");
  EXPECT_CL("clSetKernelArg.local_zero", CL_INVALID_ARG_SIZE, clSetKernelArg(local, 1, 0, nullptr));
  EXPECT_CL("clSetKernelArg.local_with_value", CL_INVALID_ARG_VALUE,
            clSetKernelArg(local, 1, 16, large));
}

// A structure's size must be exact.
TEST_F(KernelArgTest, StructureSizeIsExact) {
  const Own<cl_kernel> kernel = Kernel("sum_args");
  char large[64] = {};
  EXPECT_CL("clSetKernelArg.struct_small", CL_INVALID_ARG_SIZE,
            clSetKernelArg(kernel, 6, sizeof(Mixed) - 1, large));
  EXPECT_CL("clSetKernelArg.struct_large", CL_INVALID_ARG_SIZE,
            clSetKernelArg(kernel, 6, sizeof(Mixed) + 1, large));
  EXPECT_CL("clSetKernelArg.struct_exact", CL_SUCCESS,
            clSetKernelArg(kernel, 6, sizeof(Mixed), large));
}

// Something that is no memory object cannot be a buffer argument.
TEST_F(KernelArgTest, WrongKindOfHandle) {
  const Own<cl_kernel> kernel = Kernel("fill_int");
  const cl_command_queue not_memory = queue();
  EXPECT_CL("clSetKernelArg.not_a_memory_object", CL_INVALID_MEM_OBJECT,
            clSetKernelArg(kernel, 0, sizeof(not_memory), &not_memory));
}

// Sampler and image arguments are samplers and images.
TEST_F(KernelArgTest, SamplersAndImages) {
  if (!HasImages()) GTEST_SKIP() << "the device has no images";
  const Own<cl_program> source = Program(
      "kernel void k(global int* out, read_only image2d_t image, sampler_t how) "
      "{ *out = read_imagei(image, how, (int2)(0, 0)).x; }");
  const Own<cl_kernel> kernel = Kernel(source, "k");
  const Own<cl_mem> buffer = Buffer(64);
  const cl_mem handle = buffer;
  const cl_sampler no_sampler = nullptr;
  EXPECT_CL("clSetKernelArg.null_sampler", CL_INVALID_SAMPLER,
            clSetKernelArg(kernel, 2, sizeof(no_sampler), &no_sampler));
  EXPECT_CL("clSetKernelArg.not_a_sampler", CL_INVALID_SAMPLER,
            clSetKernelArg(kernel, 2, sizeof(handle), &handle));
  EXPECT_CL("clSetKernelArg.sampler_size", CL_INVALID_ARG_SIZE,
            clSetKernelArg(kernel, 2, 1, &handle));
  EXPECT_CL("clSetKernelArg.buffer_for_image", (AnyOf{CL_INVALID_MEM_OBJECT, CL_INVALID_ARG_VALUE}),
            clSetKernelArg(kernel, 1, sizeof(handle), &handle));
  const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};  // Of every device with images.
  cl_image_desc desc = {};
  desc.image_type = CL_MEM_OBJECT_IMAGE2D;
  desc.image_width = desc.image_height = 4;
  const Own<cl_mem> image =
      MAKE("clCreateImage.for_arg",
           clCreateImage(context(), CL_MEM_READ_ONLY, &format, &desc, nullptr, error));
  const cl_mem image_handle = image;
  EXPECT_CL("clSetKernelArg.image_for_buffer", (AnyOf{CL_INVALID_MEM_OBJECT, CL_INVALID_ARG_VALUE}),
            clSetKernelArg(kernel, 0, sizeof(image_handle), &image_handle));
}

}  // namespace
}  // namespace sluice::conformance
