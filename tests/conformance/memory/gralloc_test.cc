// SPDX-License-Identifier: Apache-2.0
// cl_img_use_gralloc_ptr: contents, order and completion. Refusals are in gralloc_refusal_test.cc.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/conformance/harness/gralloc_helpers.h"

namespace sluice::conformance {
namespace {

using Values = std::vector<cl_uint>;

Values PlusOne(Values values) {
  for (cl_uint& value : values) ++value;
  return values;
}

struct Shape {
  Backing backing;
  size_t bytes;
};

// In every kind of memory, in sizes that travel with a command, in one span, and in several.
class GrallocContentsTest : public WithGralloc, public testing::WithParamInterface<Shape> {
 protected:
  void SetUp() override {
    if (!HasBacking(GetParam().backing)) GTEST_SKIP() << "there is no /dev/udmabuf here";
    WithGralloc::SetUp();
  }
};

// A kernel sees what the allocation holds, the allocation holds what the kernel wrote, bit for bit,
// once the release has ended; and again in the next round, with what the host wrote between.
TEST_P(GrallocContentsTest, KernelTransformsTheAllocation) {
  const Allocation allocation(GetParam().backing, GetParam().bytes);
  const Own<cl_mem> memory = Import(allocation);
  ASSERT_NE(memory.get(), nullptr);
  for (cl_uint round = 0; round < 3; ++round) {
    Values before = allocation.Read();
    before[0] = 1000 + round;
    allocation.Write(before);
    EXPECT_CL("clEnqueueAcquireGrallocObjectsIMG.plain", CL_SUCCESS, Acquire(memory));
    ASSERT_EQ(AddOne(memory, allocation.bytes()), CL_SUCCESS);
    EXPECT_CL("clEnqueueReleaseGrallocObjectsIMG.plain", CL_SUCCESS, Release(memory));
    Finish();
    EXPECT_TRUE(allocation.Read() == PlusOne(before)) << "round " << round;
  }
}

// Bytes that no command wrote keep their contents, also in a buffer that is only written.
TEST_P(GrallocContentsTest, UnwrittenBytesStay) {
  const Allocation allocation(GetParam().backing, GetParam().bytes);
  const Own<cl_mem> memory = Import(allocation, CL_MEM_WRITE_ONLY);
  Values expected = allocation.Read();
  expected[1] = 77;
  ASSERT_EQ(Acquire(memory), CL_SUCCESS);
  const cl_uint value = 77;
  ASSERT_EQ(clEnqueueFillBuffer(queue(), memory, &value, sizeof(value), sizeof(value),
                                sizeof(value), 0, nullptr, nullptr),
            CL_SUCCESS);
  ASSERT_EQ(Release(memory), CL_SUCCESS);
  Finish();
  EXPECT_TRUE(allocation.Read() == expected);
}

// Reads, writes and mappings by the host reach the allocation as kernels do.
TEST_P(GrallocContentsTest, HostCommandsReachTheAllocation) {
  const Allocation allocation(GetParam().backing, GetParam().bytes);
  const Own<cl_mem> memory = Import(allocation);
  const Values before = allocation.Read();
  ASSERT_EQ(Acquire(memory), CL_SUCCESS);
  EXPECT_TRUE(Read<cl_uint>(memory, before.size()) == before);
  Write<cl_uint>(memory, {5}, 0);
  cl_int error = 0;
  auto* const mapped =
      static_cast<cl_uint*>(clEnqueueMapBuffer(queue(), memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                               0, allocation.bytes(), 0, nullptr, nullptr, &error));
  ASSERT_EQ(error, CL_SUCCESS);
  EXPECT_EQ(mapped[0], 5u);
  EXPECT_EQ(mapped[2], before[2]);
  mapped[2] = 6;
  ASSERT_EQ(clEnqueueUnmapMemObject(queue(), memory, mapped, 0, nullptr, nullptr), CL_SUCCESS);
  ASSERT_EQ(Release(memory), CL_SUCCESS);
  Finish();
  Values expected = before;
  expected[0] = 5;
  expected[2] = 6;
  EXPECT_TRUE(allocation.Read() == expected);
}

INSTANTIATE_TEST_SUITE_P(
    Backings, GrallocContentsTest,
    testing::Values(Shape{Backing::kSealed, 16}, Shape{Backing::kSealed, 4108},
                    Shape{Backing::kSealed, 5'000'000}, Shape{Backing::kUnsealed, 16},
                    Shape{Backing::kUnsealed, 70'000}, Shape{Backing::kUnsealed, 5'000'000},
                    Shape{Backing::kDmaBuf, 4096}, Shape{Backing::kDmaBuf, 1'048'576}),
    [](const testing::TestParamInfo<Shape>& info) {
      return BackingName(info.param.backing) + std::to_string(info.param.bytes);
    });

using GrallocTest = WithGralloc;

// The size of the buffer is the allocation's, and everything else is as it was asked for.
TEST_F(GrallocTest, Describes) {
  const Allocation allocation(Backing::kSealed, 12'344);
  const Own<cl_mem> memory = Import(allocation, CL_MEM_READ_ONLY | CL_MEM_HOST_READ_ONLY);
  size_t bytes = 0;
  EXPECT_EQ(clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof(bytes), &bytes, nullptr), CL_SUCCESS);
  EXPECT_EQ(bytes, 12'344u);
  cl_mem_flags flags = 0;
  EXPECT_EQ(clGetMemObjectInfo(memory, CL_MEM_FLAGS, sizeof(flags), &flags, nullptr), CL_SUCCESS);
  EXPECT_EQ(flags,
            cl_mem_flags{CL_MEM_READ_ONLY | CL_MEM_HOST_READ_ONLY} | CL_MEM_USE_GRALLOC_PTR_IMG);
  void* host = &bytes;
  EXPECT_EQ(clGetMemObjectInfo(memory, CL_MEM_HOST_PTR, sizeof(host), &host, nullptr), CL_SUCCESS);
  EXPECT_EQ(host, nullptr);
  if (!TheHarness().IsSluice()) return;
  const cl_mem_info way_name = 0x534C0000;  // CL_MEM_SHARING_WAY_SLUICE
  cl_uint way = 0;
  EXPECT_EQ(clGetMemObjectInfo(memory, way_name, sizeof(way), &way, nullptr), CL_SUCCESS);
  EXPECT_TRUE(way >= 1 && way <= 3) << way;
  const Own<cl_mem> plain = Buffer(64);
  EXPECT_EQ(clGetMemObjectInfo(plain, way_name, sizeof(way), &way, nullptr), CL_INVALID_VALUE);
}

// Each way, forced, has the same result and says which it is; one that cannot be gone is an error.
TEST_F(GrallocTest, EachWayForced) {
  if (!TheHarness().IsSluice()) GTEST_SKIP() << "Sluice's own switch";
  struct Way {
    const char* name;
    cl_uint number;
  };
  const bool is_cpu =
      (DeviceValue<cl_device_type>(device(), CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
  const bool may_import = TheHarness().kind == Kind::kRing && is_cpu;
  for (const Way& way : {Way{"import", 1}, Way{"shadow", 2}, Way{"staging", 3}}) {
    SCOPED_TRACE(way.name);
    const Allocation allocation(Backing::kSealed, 300'000);
    ::setenv("SLUICE_SHARING", way.name, 1);
    const bool possible = way.number == 3 || (way.number == 1 && may_import);
    const Own<cl_mem> memory = EXPECT_CREATE(
        "clCreateBuffer.gralloc_forced_way",
        possible ? CL_SUCCESS : CL_MEM_OBJECT_ALLOCATION_FAILURE,
        clCreateBuffer(context(), CL_MEM_USE_GRALLOC_PTR_IMG, 0, allocation.handle(), error));
    ::unsetenv("SLUICE_SHARING");
    if (!possible) continue;
    const cl_mem_info way_name = 0x534C0000;  // CL_MEM_SHARING_WAY_SLUICE
    cl_uint taken = 0;
    EXPECT_EQ(clGetMemObjectInfo(memory, way_name, sizeof(taken), &taken, nullptr), CL_SUCCESS);
    EXPECT_EQ(taken, way.number);
    const Values before = allocation.Read();
    ASSERT_EQ(Acquire(memory), CL_SUCCESS);
    ASSERT_EQ(AddOne(memory, allocation.bytes()), CL_SUCCESS);
    ASSERT_EQ(Release(memory), CL_SUCCESS);
    Finish();
    EXPECT_TRUE(allocation.Read() == PlusOne(before));
  }
}

// The handle and its descriptor may go once the buffer is made.
TEST_F(GrallocTest, HandleMayBeClosed) {
  auto allocation = std::make_unique<Allocation>(Backing::kSealed, 4096);
  const Values before = allocation->Read();
  const Own<cl_mem> memory = Import(*allocation);
  allocation.reset();
  ASSERT_EQ(Acquire(memory), CL_SUCCESS);
  EXPECT_TRUE(Read<cl_uint>(memory, before.size()) == before);
  ASSERT_EQ(Release(memory), CL_SUCCESS);
  Finish();
}

// Nothing is fetched before the wait list has ended, whatever it holds, and the call does not wait.
TEST_F(GrallocTest, AcquireWaitsForItsList) {
  const Allocation allocation(Backing::kSealed, 100'000);
  const Own<cl_mem> memory = Import(allocation);
  const Own<cl_event> gate = UserEvent();
  cl_mem handle = memory;
  Own<cl_event> acquired, released;
  EXPECT_CL(
      "clEnqueueAcquireGrallocObjectsIMG.wait_list", CL_SUCCESS,
      clEnqueueAcquireGrallocObjectsIMG(queue(), 1, &handle, 1, gate.AsList(), acquired.Out()));
  ASSERT_EQ(AddOne(memory, allocation.bytes()), CL_SUCCESS);
  ASSERT_EQ(Release(memory, released.Out()), CL_SUCCESS);
  EXPECT_GT(StatusOf(acquired), CL_COMPLETE);
  Values late = allocation.Read();
  for (cl_uint& value : late) value ^= 0x5555;
  allocation.Write(late);
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  ASSERT_EQ(clWaitForEvents(1, released.AsList()), CL_SUCCESS);
  EXPECT_EQ(StatusOf(acquired), CL_COMPLETE);
  EXPECT_TRUE(allocation.Read() == PlusOne(late));
}

// The events say what they are of.
TEST_F(GrallocTest, EventsTellTheirCommand) {
  const Allocation allocation(Backing::kSealed, 64);
  const Own<cl_mem> memory = Import(allocation);
  Own<cl_event> acquired, released;
  ASSERT_EQ(Acquire(memory, acquired.Out()), CL_SUCCESS);
  ASSERT_EQ(Release(memory, released.Out()), CL_SUCCESS);
  cl_command_type type = 0;
  EXPECT_EQ(clGetEventInfo(acquired, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, nullptr),
            CL_SUCCESS);
  EXPECT_EQ(type, cl_command_type{CL_COMMAND_ACQUIRE_GRALLOC_OBJECTS_IMG});
  EXPECT_EQ(clGetEventInfo(released, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, nullptr),
            CL_SUCCESS);
  EXPECT_EQ(type, cl_command_type{CL_COMMAND_RELEASE_GRALLOC_OBJECTS_IMG});
  Finish();
}

// A command of another queue that waits for the release finds the allocation written.
TEST_F(GrallocTest, OtherQueuesWaitForTheRelease) {
  const Allocation allocation(Backing::kSealed, 3'000'000);
  const Own<cl_mem> first = Import(allocation), second = Import(allocation);
  const Own<cl_command_queue> other = Queue();
  const Values before = allocation.Read();
  Own<cl_event> released;
  ASSERT_EQ(Acquire(first), CL_SUCCESS);
  ASSERT_EQ(AddOne(first, allocation.bytes()), CL_SUCCESS);
  ASSERT_EQ(Release(first, released.Out()), CL_SUCCESS);
  cl_mem handle = second;
  ASSERT_EQ(clEnqueueAcquireGrallocObjectsIMG(other, 1, &handle, 1, released.AsList(), nullptr),
            CL_SUCCESS);
  Values back(before.size());
  ASSERT_EQ(clEnqueueReadBuffer(other, second, CL_TRUE, 0, allocation.bytes(), back.data(), 0,
                                nullptr, nullptr),
            CL_SUCCESS);
  EXPECT_TRUE(back == PlusOne(before));
  ASSERT_EQ(clEnqueueReleaseGrallocObjectsIMG(other, 1, &handle, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(clFinish(other), CL_SUCCESS);
}

// In a queue that is out of order, acquire and release wait for their lists. Their parts wait for
// nothing else, not for a command or an acquire that is held, whatever the driver's markers do.
TEST_F(GrallocTest, OutOfOrderQueueWaitsForListsOnly) {
  if (!HasOutOfOrder()) GTEST_SKIP() << "the device has no out-of-order queues";
  // Drivers whose queues out of order run in order hold the fill in between.
  const bool gate_first = !MayRun("clEnqueueReadBuffer.overtakes_held");
  for (const Backing backing : {Backing::kSealed, Backing::kUnsealed}) {
    SCOPED_TRACE(BackingName(backing));
    const Allocation allocation(backing, 50'000), held(backing, 4096);
    const Own<cl_mem> memory = Import(allocation), held_memory = Import(held), gated = Buffer(64);
    const Own<cl_command_queue> other = Queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    const Own<cl_event> gate = UserEvent();
    const cl_uint value = 9;
    ASSERT_EQ(
        clEnqueueFillBuffer(other, gated, &value, sizeof(value), 0, 64, 1, gate.AsList(), nullptr),
        CL_SUCCESS);
    cl_mem held_handle = held_memory;
    ASSERT_EQ(clEnqueueAcquireGrallocObjectsIMG(other, 1, &held_handle, 1, gate.AsList(), nullptr),
              CL_SUCCESS);
    if (gate_first) {
      ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    }
    cl_mem handle = memory;
    Own<cl_event> acquired, filled, released;
    ASSERT_EQ(clEnqueueAcquireGrallocObjectsIMG(other, 1, &handle, 0, nullptr, acquired.Out()),
              CL_SUCCESS);
    ASSERT_EQ(clEnqueueFillBuffer(other, memory, &value, sizeof(value), 0, 8, 1, acquired.AsList(),
                                  filled.Out()),
              CL_SUCCESS);
    ASSERT_EQ(
        clEnqueueReleaseGrallocObjectsIMG(other, 1, &handle, 1, filled.AsList(), released.Out()),
        CL_SUCCESS);
    ASSERT_EQ(clWaitForEvents(1, released.AsList()), CL_SUCCESS);
    const Values after = allocation.Read();
    EXPECT_EQ(after[0], 9u);
    EXPECT_EQ(after[1], 9u);
    if (!gate_first) {
      ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    }
    ASSERT_EQ(clEnqueueReleaseGrallocObjectsIMG(other, 1, &held_handle, 0, nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(clFinish(other), CL_SUCCESS);
  }
}

// Several objects in one call are all there when its event has ended.
TEST_F(GrallocTest, TwoObjectsInOneCall) {
  const Allocation a(Backing::kSealed, 40'000), b(Backing::kUnsealed, 2'000'000);
  const Own<cl_mem> first = Import(a), second = Import(b);
  const Values before_a = a.Read(), before_b = b.Read();
  const cl_mem both[] = {first, second};
  ASSERT_EQ(clEnqueueAcquireGrallocObjectsIMG(queue(), 2, both, 0, nullptr, nullptr), CL_SUCCESS);
  ASSERT_EQ(AddOne(first, a.bytes()), CL_SUCCESS);
  ASSERT_EQ(AddOne(second, b.bytes()), CL_SUCCESS);
  Own<cl_event> released;
  ASSERT_EQ(clEnqueueReleaseGrallocObjectsIMG(queue(), 2, both, 0, nullptr, released.Out()),
            CL_SUCCESS);
  ASSERT_EQ(clWaitForEvents(1, released.AsList()), CL_SUCCESS);
  EXPECT_TRUE(a.Read() == PlusOne(before_a));
  EXPECT_TRUE(b.Read() == PlusOne(before_b));
}

// A sub-buffer of a shared buffer shares its state and its bytes.
TEST_F(GrallocTest, SubBufferSharesBytes) {
  const Allocation allocation(Backing::kSealed, 8192);
  const Own<cl_mem> memory = Import(allocation);
  const cl_buffer_region region = {4096, 4096};
  const Own<cl_mem> part =
      MAKE("clCreateSubBuffer.gralloc",
           clCreateSubBuffer(memory, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, error));
  Values expected = allocation.Read();
  ASSERT_EQ(Acquire(memory), CL_SUCCESS);
  ASSERT_EQ(AddOne(part, 4096), CL_SUCCESS);
  ASSERT_EQ(Release(memory), CL_SUCCESS);
  Finish();
  for (size_t i = 1024; i < 2048; ++i) ++expected[i];
  EXPECT_TRUE(allocation.Read() == expected);
}

// An acquire whose wait list fails, fails; so does the release after it, and nothing is stored. (Of
// memory that the device does not use itself.)
TEST_F(GrallocTest, FailedAcquireStoresNothing) {
  const Allocation allocation(Backing::kUnsealed, 4096);
  const Own<cl_mem> memory = Import(allocation);
  const Own<cl_command_queue> other = Queue(), writer = Queue();
  const Own<cl_event> gate = UserEvent();
  const Values before = allocation.Read();
  cl_mem handle = memory;
  Own<cl_event> acquired, released;
  ASSERT_EQ(clEnqueueAcquireGrallocObjectsIMG(other, 1, &handle, 1, gate.AsList(), acquired.Out()),
            CL_SUCCESS);
  ASSERT_EQ(clSetUserEventStatus(gate, -5), CL_SUCCESS);
  EXPECT_EQ(clWaitForEvents(1, acquired.AsList()), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  EXPECT_LT(StatusOf(acquired), 0);
  const cl_uint value = 1;
  ASSERT_EQ(
      clEnqueueFillBuffer(writer, memory, &value, sizeof(value), 0, 4096, 0, nullptr, nullptr),
      CL_SUCCESS);
  ASSERT_EQ(clEnqueueReleaseGrallocObjectsIMG(writer, 1, &handle, 0, nullptr, released.Out()),
            CL_SUCCESS);
  EXPECT_EQ(clWaitForEvents(1, released.AsList()), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  EXPECT_TRUE(allocation.Read() == before);
}

// Memory that its owner shrinks is an error, not a crash.
TEST_F(GrallocTest, ShrunkAllocationFails) {
  const Allocation allocation(Backing::kUnsealed, 100'000);
  const Own<cl_mem> memory = Import(allocation);
  const Own<cl_command_queue> other = Queue();
  ASSERT_EQ(::ftruncate(allocation.fd(), 10), 0);
  cl_mem handle = memory;
  Own<cl_event> acquired;
  ASSERT_EQ(clEnqueueAcquireGrallocObjectsIMG(other, 1, &handle, 0, nullptr, acquired.Out()),
            CL_SUCCESS);
  EXPECT_EQ(clWaitForEvents(1, acquired.AsList()), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  // So that the allocation can be taken down.
  ASSERT_EQ(::ftruncate(allocation.fd(), 100'000), 0);
}

}  // namespace
}  // namespace sluice::conformance
