// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "tests/conformance/harness/fixtures.h"

namespace sluice::conformance {
namespace {

class LaunchTest : public WithProgram {
 protected:
  cl_int LaunchN(cl_kernel kernel, cl_uint dims, const size_t* offset, const size_t* global,
                 const size_t* local) const {
    return clEnqueueNDRangeKernel(queue(), kernel, dims, offset, global, local, 0, nullptr,
                                  nullptr);
  }
};

struct Range {
  cl_uint dims;
  size_t offset[3];
  size_t global[3];
  size_t local[3];
};

// Every work-item runs once and sees the ids that the specification gives it.
TEST_F(LaunchTest, WorkItemsSeeTheirIds) {
  if (!MayRun("clEnqueueNDRangeKernel.work_item_functions"))
    GTEST_SKIP() << "see the table of differences";
  const Range ranges[] = {
      {1, {0, 0, 0}, {16, 1, 1}, {4, 1, 1}},
      {1, {5, 0, 0}, {8, 1, 1}, {8, 1, 1}},
      {2, {0, 0, 0}, {8, 4, 1}, {4, 2, 1}},
      {3, {1, 2, 3}, {4, 4, 2}, {2, 2, 1}},
  };
  const Own<cl_kernel> kernel = Kernel("record_range");
  for (const Range& range : ranges) {
    const size_t total = range.global[0] * range.global[1] * range.global[2];
    const Own<cl_mem> out = BufferOf(std::vector<cl_uint>(total * 16, 0xffffffffu));
    SetArg(kernel, 0, out);
    ASSERT_CL("clEnqueueNDRangeKernel.plain", CL_SUCCESS,
              LaunchN(kernel, range.dims, range.offset, range.global, range.local));
    const std::vector<cl_uint> seen = Read<cl_uint>(out, total * 16);
    for (size_t item = 0; item < total; ++item) {
      const size_t id[3] = {item % range.global[0], item / range.global[0] % range.global[1],
                            item / range.global[0] / range.global[1]};
      const cl_uint* mine = seen.data() + item * 16;
      for (cl_uint d = 0; d < 3; ++d) {
        ASSERT_EQ(mine[d], id[d] + range.offset[d]) << "global id of item " << item;
        ASSERT_EQ(mine[3 + d], id[d] % range.local[d]) << "local id of item " << item;
        ASSERT_EQ(mine[6 + d], id[d] / range.local[d]) << "group of item " << item;
        ASSERT_EQ(mine[9 + d], range.global[d] / range.local[d]) << "number of groups";
        ASSERT_EQ(mine[12 + d], range.local[d]) << "local size";
      }
      ASSERT_EQ(mine[15], range.dims);
    }
  }
}

// No local size and no offset leave both to the driver; an event comes if one is asked for.
TEST_F(LaunchTest, SizesAreOptional) {
  const Own<cl_kernel> kernel = Kernel("add_one");
  const Own<cl_mem> data = BufferOf(std::vector<cl_int>(1000, 0));
  SetArg(kernel, 0, data);
  Own<cl_event> event;
  const size_t global = 1000;
  ASSERT_CL("clEnqueueNDRangeKernel.no_local", CL_SUCCESS,
            clEnqueueNDRangeKernel(queue(), kernel, 1, nullptr, &global, nullptr, 0, nullptr,
                                   event.Out()));
  ASSERT_NE(event.get(), nullptr);
  EXPECT_EQ(clWaitForEvents(1, event.AsList()), CL_SUCCESS);
  EXPECT_EQ(Read<cl_int>(data, 1000), std::vector<cl_int>(1000, 1));
}

// Launches on one in-order queue run one after the other.
TEST_F(LaunchTest, InOrderLaunchesFollowEachOther) {
  const Own<cl_kernel> kernel = Kernel("add_one");
  const Own<cl_mem> data = BufferOf(std::vector<cl_int>(256, 0));
  SetArg(kernel, 0, data);
  for (int i = 0; i < 500; ++i) ASSERT_EQ(Launch(queue(), kernel, 256), CL_SUCCESS);
  EXPECT_EQ(Read<cl_int>(data, 256), std::vector<cl_int>(256, 500));
}

// A kernel with a required size runs with that size and no other.
TEST_F(LaunchTest, RequiredSizeIsUsed) {
  const Own<cl_kernel> kernel = Kernel("group_of_8");
  const Own<cl_mem> out = BufferOf(std::vector<cl_int>(16, 0));
  SetArg(kernel, 0, out);
  const size_t global = 16, right = 8, wrong = 4, odd = 12;
  EXPECT_CL("clEnqueueNDRangeKernel.required_given", CL_SUCCESS,
            LaunchN(kernel, 1, nullptr, &global, &right));
  EXPECT_EQ(Read<cl_int>(out, 16), std::vector<cl_int>(16, 8));
  EXPECT_CL("clEnqueueNDRangeKernel.required_other", CL_INVALID_WORK_GROUP_SIZE,
            LaunchN(kernel, 1, nullptr, &global, &wrong));
  EXPECT_CL("clEnqueueNDRangeKernel.required_not_dividing", CL_INVALID_WORK_GROUP_SIZE,
            LaunchN(kernel, 1, nullptr, &odd, &right));
  Write(out, std::vector<cl_int>(16, 0));
  // Up to 2.2 the specification refuses this, 3.0 lets the required size be used; the driver
  // decides which it is.
  const cl_int left_out = LaunchN(kernel, 1, nullptr, &global, nullptr);
  EXPECT_CL("clEnqueueNDRangeKernel.required_left_out",
            (AnyOf{CL_SUCCESS, CL_INVALID_WORK_GROUP_SIZE}), left_out);
  EXPECT_EQ(Read<cl_int>(out, 16), std::vector<cl_int>(16, left_out == CL_SUCCESS ? 8 : 0));
}

// Each wrong argument of a launch has its code.
TEST_F(LaunchTest, Refusals) {
  const Own<cl_kernel> kernel = Kernel("add_one");
  const Own<cl_mem> data = Buffer(4096);
  SetArg(kernel, 0, data);
  const size_t global[3] = {16, 1, 1};
  EXPECT_CL(
      "clEnqueueNDRangeKernel.null_queue", CL_INVALID_COMMAND_QUEUE,
      clEnqueueNDRangeKernel(nullptr, kernel, 1, nullptr, global, nullptr, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueNDRangeKernel.null_kernel", CL_INVALID_KERNEL,
            LaunchN(nullptr, 1, nullptr, global, nullptr));
  EXPECT_CL("clEnqueueNDRangeKernel.zero_dims", CL_INVALID_WORK_DIMENSION,
            LaunchN(kernel, 0, nullptr, global, nullptr));
  EXPECT_CL("clEnqueueNDRangeKernel.four_dims", CL_INVALID_WORK_DIMENSION,
            LaunchN(kernel, 4, nullptr, global, nullptr));
  const Own<cl_context> other = NewContext();
  const Own<cl_command_queue> foreign =
      MAKE("clCreateCommandQueueWithProperties.foreign",
           clCreateCommandQueueWithProperties(other, device(), nullptr, error));
  EXPECT_CL(
      "clEnqueueNDRangeKernel.foreign_kernel", CL_INVALID_CONTEXT,
      clEnqueueNDRangeKernel(foreign, kernel, 1, nullptr, global, nullptr, 0, nullptr, nullptr));
  // Before 2.1 a null or zero global size was an error; since then it makes the launch a marker.
  EXPECT_CL("clEnqueueNDRangeKernel.null_global", (AnyOf{CL_INVALID_GLOBAL_WORK_SIZE, CL_SUCCESS}),
            LaunchN(kernel, 1, nullptr, nullptr, nullptr));
  const size_t zero[3] = {0, 1, 1};
  EXPECT_CL("clEnqueueNDRangeKernel.zero_global", (AnyOf{CL_INVALID_GLOBAL_WORK_SIZE, CL_SUCCESS}),
            LaunchN(kernel, 1, nullptr, zero, nullptr));
  const size_t end = std::numeric_limits<size_t>::max() - 4;
  EXPECT_CL("clEnqueueNDRangeKernel.offset_wraps", CL_INVALID_GLOBAL_OFFSET,
            LaunchN(kernel, 1, &end, global, nullptr));
  Finish();
}

// Arguments that were never set are found by the launch.
TEST_F(LaunchTest, UnsetArgumentsAreRefused) {
  const Own<cl_kernel> kernel = Kernel("fill_int");
  const Own<cl_mem> data = Buffer(4096);
  EXPECT_CL("clEnqueueNDRangeKernel.no_args", CL_INVALID_KERNEL_ARGS, Launch(queue(), kernel, 16));
  SetArg(kernel, 0, data);
  EXPECT_CL("clEnqueueNDRangeKernel.one_arg_missing", CL_INVALID_KERNEL_ARGS,
            Launch(queue(), kernel, 16));
  // A refused value leaves the argument unset.
  EXPECT_EQ(clSetKernelArg(kernel, 1, 1, "x"), CL_INVALID_ARG_SIZE);
  EXPECT_CL("clEnqueueNDRangeKernel.refused_arg", CL_INVALID_KERNEL_ARGS,
            Launch(queue(), kernel, 16));
  SetArg(kernel, 1, cl_int{1});
  EXPECT_CL("clEnqueueNDRangeKernel.all_args", CL_SUCCESS, Launch(queue(), kernel, 16));
  Finish();
}

// Work-group sizes beyond the device's or the kernel's limits are refused.
TEST_F(LaunchTest, WorkGroupLimits) {
  const Own<cl_kernel> kernel = Kernel("add_one");
  const size_t most = DeviceValue<size_t>(device(), CL_DEVICE_MAX_WORK_GROUP_SIZE);
  const std::vector<size_t> sizes = DeviceArray<size_t>(device(), CL_DEVICE_MAX_WORK_ITEM_SIZES);
  const Own<cl_mem> data = Buffer(sizeof(cl_int) * 4 * (most + sizes[0]));
  SetArg(kernel, 0, data);
  size_t global[3] = {most * 2, 1, 1}, local[3] = {most * 2, 1, 1};
  EXPECT_CL("clEnqueueNDRangeKernel.group_too_large",
            (AnyOf{CL_INVALID_WORK_GROUP_SIZE, CL_INVALID_WORK_ITEM_SIZE}),
            LaunchN(kernel, 1, nullptr, global, local));
  const size_t above[3] = {1, 1, sizes[2] + 1};
  EXPECT_CL("clEnqueueNDRangeKernel.item_too_large",
            (AnyOf{CL_INVALID_WORK_ITEM_SIZE, CL_INVALID_WORK_GROUP_SIZE}),
            LaunchN(kernel, 3, nullptr, above, above));
  const size_t zero_local[1] = {0}, sixteen[1] = {16};
  EXPECT_CL("clEnqueueNDRangeKernel.zero_local",
            (AnyOf{CL_INVALID_WORK_GROUP_SIZE, CL_INVALID_WORK_ITEM_SIZE}),
            LaunchN(kernel, 1, nullptr, sixteen, zero_local));
  const size_t square[3] = {most, 2, 1};
  EXPECT_CL("clEnqueueNDRangeKernel.product_too_large",
            (AnyOf{CL_INVALID_WORK_GROUP_SIZE, CL_INVALID_WORK_ITEM_SIZE}),
            LaunchN(kernel, 2, nullptr, square, square));
  Finish();
}

// Without non-uniform work-groups the local size divides the global one; with them, OpenCL C 2.0
// kernels may differ.
TEST_F(LaunchTest, LocalSizeDivides) {
  const Own<cl_kernel> kernel = Kernel("add_one");
  const Own<cl_mem> data = Buffer(4096);
  SetArg(kernel, 0, data);
  const size_t global = 15, local = 4;
  // The program is built as OpenCL C 1.2, where groups are uniform whatever the device can do.
  EXPECT_CL("clEnqueueNDRangeKernel.local_not_dividing", CL_INVALID_WORK_GROUP_SIZE,
            LaunchN(kernel, 1, nullptr, &global, &local));
}

// More local memory than the device has is refused.
TEST_F(LaunchTest, TooMuchLocalMemory) {
  const cl_ulong most = DeviceValue<cl_ulong>(device(), CL_DEVICE_LOCAL_MEM_SIZE);
  const Own<cl_kernel> kernel = Kernel("reverse_groups");
  const Own<cl_mem> data = Buffer(4096);
  SetArg(kernel, 0, data);
  if (clSetKernelArg(kernel, 1, most * 4, nullptr) != CL_SUCCESS)
    GTEST_SKIP() << "refused when the argument was set";
  const size_t global = 16, local = 4;
  EXPECT_CL("clEnqueueNDRangeKernel.too_much_local", CL_OUT_OF_RESOURCES,
            LaunchN(kernel, 1, nullptr, &global, &local));
}

// A buffer that is released after the launch was enqueued lives until the launch has ended.
TEST_F(LaunchTest, ReleasedArgumentsStayUntilTheLaunchEnds) {
  const Own<cl_kernel> kernel = Kernel("copy_int");
  Own<cl_mem> from = BufferOf(Counting(4096));
  const Own<cl_mem> to = Buffer(4096 * sizeof(cl_int));
  const Own<cl_event> gate = UserEvent();
  SetArg(kernel, 0, from);
  SetArg(kernel, 1, to);
  const size_t global = 4096;
  ASSERT_EQ(clEnqueueNDRangeKernel(queue(), kernel, 1, nullptr, &global, nullptr, 1, gate.AsList(),
                                   nullptr),
            CL_SUCCESS);
  from.Reset();
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  EXPECT_EQ(Read<cl_int>(to, 4096), Counting(4096));
}

// A task is a launch of one work-item.
TEST_F(LaunchTest, TaskIsOneWorkItem) {
  const Own<cl_kernel> kernel = Kernel("fill_int");
  const Own<cl_mem> out = BufferOf(std::vector<cl_int>(4, 0));
  EXPECT_CL("clEnqueueTask.unset_args", CL_INVALID_KERNEL_ARGS,
            clEnqueueTask(queue(), kernel, 0, nullptr, nullptr));
  SetArg(kernel, 0, out);
  SetArg(kernel, 1, cl_int{7});
  Own<cl_event> event;
  EXPECT_CL("clEnqueueTask.plain", CL_SUCCESS,
            clEnqueueTask(queue(), kernel, 0, nullptr, event.Out()));
  EXPECT_EQ(Read<cl_int>(out, 4), (std::vector<cl_int>{7, 0, 0, 0}));
  EXPECT_CL("clEnqueueTask.null_queue", CL_INVALID_COMMAND_QUEUE,
            clEnqueueTask(nullptr, kernel, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueTask.null_kernel", CL_INVALID_KERNEL,
            clEnqueueTask(queue(), nullptr, 0, nullptr, nullptr));
  cl_command_type type = 0;
  EXPECT_EQ(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, nullptr), CL_SUCCESS);
  if (!Differs("clEnqueueTask.command_type")) {
    EXPECT_EQ(type, static_cast<cl_command_type>(CL_COMMAND_TASK));
  }
}

void CL_CALLBACK AddInto(void* arguments) {
  struct Pack {
    cl_int* memory;
    cl_int value;
  };
  const Pack* pack = static_cast<Pack*>(arguments);
  pack->memory[0] += pack->value;
}

// A native kernel runs in the application's process where the device can, and is refused where it
// cannot.
TEST_F(LaunchTest, NativeKernel) {
  struct {
    cl_mem memory;
    cl_int value;
  } arguments = {nullptr, 5};
  const Own<cl_mem> data = BufferOf(std::vector<cl_int>{37});
  arguments.memory = data;
  const cl_mem memory = data;
  const void* where = &arguments.memory;
  const auto launch = [&](cl_command_queue queue, void(CL_CALLBACK * function)(void*), void* args,
                          size_t bytes, cl_uint count, const cl_mem* list, const void** places) {
    return clEnqueueNativeKernel(queue, function, args, bytes, count, list, places, 0, nullptr,
                                 nullptr);
  };
  EXPECT_CL("clEnqueueNativeKernel.null_queue", CL_INVALID_COMMAND_QUEUE,
            launch(nullptr, &AddInto, &arguments, sizeof(arguments), 1, &memory, &where));
  const bool has_native =
      (DeviceValue<cl_device_exec_capabilities>(device(), CL_DEVICE_EXECUTION_CAPABILITIES) &
       CL_EXEC_NATIVE_KERNEL) != 0;
  EXPECT_FALSE(has_native && TheHarness().IsSluice())
      << "a forwarded device cannot run the application's functions";
  if (!has_native) {
    EXPECT_CL("clEnqueueNativeKernel.unsupported", CL_INVALID_OPERATION,
              launch(queue(), &AddInto, &arguments, sizeof(arguments), 1, &memory, &where));
    GTEST_SKIP() << "the device has no native kernels (CL_EXEC_NATIVE_KERNEL)";
  }
  EXPECT_CL("clEnqueueNativeKernel.null_function", CL_INVALID_VALUE,
            launch(queue(), nullptr, &arguments, sizeof(arguments), 1, &memory, &where));
  EXPECT_CL("clEnqueueNativeKernel.size_without_args", CL_INVALID_VALUE,
            launch(queue(), &AddInto, nullptr, sizeof(arguments), 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueNativeKernel.objects_without_list", CL_INVALID_VALUE,
            launch(queue(), &AddInto, &arguments, sizeof(arguments), 1, nullptr, nullptr));
  EXPECT_CL("clEnqueueNativeKernel.plain", CL_SUCCESS,
            launch(queue(), &AddInto, &arguments, sizeof(arguments), 1, &memory, &where));
  EXPECT_EQ(Read<cl_int>(data, 1)[0], 42);
}

}  // namespace
}  // namespace sluice::conformance
