// SPDX-License-Identifier: Apache-2.0
// cl_img_use_gralloc_ptr: everything that is refused, with the extension's codes.
#include <unistd.h>

#include <algorithm>

#include "tests/conformance/harness/gralloc_helpers.h"

namespace sluice::conformance {
namespace {

using GrallocRefusalTest = WithGralloc;

// clCreateBuffer: the size comes from the allocation, the pointer must be there, no other flag that
// says where the memory is goes with it.
TEST_F(GrallocRefusalTest, Creation) {
  const Allocation allocation(Backing::kSealed, 4096);
  const cl_mem_flags flags = CL_MEM_READ_WRITE | CL_MEM_USE_GRALLOC_PTR_IMG;
  void* const handle = allocation.handle();
  EXPECT_CREATE("clCreateBuffer.gralloc_size", CL_INVALID_BUFFER_SIZE,
                clCreateBuffer(context(), flags, 4096, handle, error));
  EXPECT_CREATE("clCreateBuffer.gralloc_null", CL_INVALID_HOST_PTR,
                clCreateBuffer(context(), flags, 0, nullptr, error));
  EXPECT_CREATE("clCreateBuffer.gralloc_null_context", CL_INVALID_CONTEXT,
                clCreateBuffer(nullptr, flags, 0, handle, error));
  for (const cl_mem_flags other :
       {CL_MEM_USE_HOST_PTR, CL_MEM_COPY_HOST_PTR, CL_MEM_ALLOC_HOST_PTR}) {
    EXPECT_CREATE("clCreateBuffer.gralloc_host_ptr_flag", CL_INVALID_VALUE,
                  clCreateBuffer(context(), flags | other, 0, handle, error));
  }
  EXPECT_CREATE("clCreateBuffer.gralloc_two_accesses", CL_INVALID_VALUE,
                clCreateBuffer(context(), flags | CL_MEM_READ_ONLY, 0, handle, error));
}

// A handle that is none: another version, no descriptor, counts that cannot be, what is no memory.
TEST_F(GrallocRefusalTest, HandlesThatAreNone) {
  const Allocation allocation(Backing::kSealed, 4096);
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const int fd = allocation.fd();
  const int handles[][4] = {{11, 1, 0, fd},          {0, 1, 0, fd},     {12, 0, 1, fd},
                            {12, -1, 0, fd},         {12, 1025, 0, fd}, {12, 1, -1, fd},
                            {12, 1, 1025, fd},       {12, 1, 0, -1},    {12, 1, 0, 1'000'000},
                            {12, 1, 0, pipe_ends[0]}};
  for (const auto& handle : handles) {
    SCOPED_TRACE(testing::PrintToString(handle));
    EXPECT_CREATE(
        "clCreateBuffer.gralloc_bad_handle", CL_INVALID_GRALLOC_OBJECT_IMG,
        clCreateBuffer(context(), CL_MEM_USE_GRALLOC_PTR_IMG, 0, const_cast<int*>(handle), error));
  }
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
}

// The flag is for clCreateBuffer only.
TEST_F(GrallocRefusalTest, Images) {
  if (!HasImages()) GTEST_SKIP() << "the device has no images";
  const Allocation allocation(Backing::kSealed, 4096);
  const cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
  cl_image_desc desc = {};
  desc.image_type = CL_MEM_OBJECT_IMAGE2D;
  desc.image_width = desc.image_height = 16;
  EXPECT_CREATE("clCreateImage.gralloc", CL_INVALID_VALUE,
                clCreateImage(context(), CL_MEM_USE_GRALLOC_PTR_IMG, &format, &desc,
                              allocation.handle(), error));
}

// Every command that uses a buffer refuses one that is not acquired, and a part of one.
TEST_F(GrallocRefusalTest, UseWhileReleased) {
  constexpr cl_int kRefused = CL_GRALLOC_RESOURCE_NOT_ACQUIRED_IMG;
  const Allocation allocation(Backing::kSealed, 4096);
  const Own<cl_mem> memory = Import(allocation), plain = Buffer(4096);
  const cl_buffer_region region = {0, 1024};
  const Own<cl_mem> part =
      MAKE("clCreateSubBuffer.gralloc",
           clCreateSubBuffer(memory, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, error));
  for (const bool acquired_before : {false, true}) {
    if (acquired_before) {
      ASSERT_EQ(Acquire(memory), CL_SUCCESS);
      ASSERT_EQ(Release(memory), CL_SUCCESS);
    }
    for (const cl_mem one : {memory.get(), part.get()}) {
      cl_uint value = 0;
      EXPECT_CL("clEnqueueNDRangeKernel.gralloc_released", kRefused, AddOne(one, 64));
      EXPECT_CL("clEnqueueReadBuffer.gralloc_released", kRefused,
                clEnqueueReadBuffer(queue(), one, CL_TRUE, 0, 4, &value, 0, nullptr, nullptr));
      EXPECT_CL("clEnqueueWriteBuffer.gralloc_released", kRefused,
                clEnqueueWriteBuffer(queue(), one, CL_TRUE, 0, 4, &value, 0, nullptr, nullptr));
      EXPECT_CL("clEnqueueFillBuffer.gralloc_released", kRefused,
                clEnqueueFillBuffer(queue(), one, &value, 4, 0, 4, 0, nullptr, nullptr));
      EXPECT_CL("clEnqueueCopyBuffer.gralloc_released_source", kRefused,
                clEnqueueCopyBuffer(queue(), one, plain, 0, 0, 4, 0, nullptr, nullptr));
      EXPECT_CL("clEnqueueCopyBuffer.gralloc_released_destination", kRefused,
                clEnqueueCopyBuffer(queue(), plain, one, 0, 0, 4, 0, nullptr, nullptr));
      EXPECT_CL("clEnqueueMigrateMemObjects.gralloc_released", kRefused,
                clEnqueueMigrateMemObjects(queue(), 1, &one, 0, 0, nullptr, nullptr));
      EXPECT_CREATE(
          "clEnqueueMapBuffer.gralloc_released", kRefused,
          clEnqueueMapBuffer(queue(), one, CL_TRUE, CL_MAP_READ, 0, 4, 0, nullptr, nullptr, error));
    }
  }
  Finish();
}

// The lists of both functions.
TEST_F(GrallocRefusalTest, Arguments) {
  const Allocation allocation(Backing::kSealed, 4096);
  const Own<cl_mem> memory = Import(allocation), plain = Buffer(64);
  const Own<cl_context> other_context = NewContext();
  const Own<cl_event> foreign =
      MAKE("clCreateUserEvent.other", clCreateUserEvent(other_context, error));
  const cl_mem handle = memory, ordinary = plain, null = nullptr;
  const cl_event no_event = nullptr;
  for (const SyncGralloc sync :
       {clEnqueueAcquireGrallocObjectsIMG, clEnqueueReleaseGrallocObjectsIMG}) {
    const std::string name = sync == clEnqueueAcquireGrallocObjectsIMG
                                 ? "clEnqueueAcquireGrallocObjectsIMG"
                                 : "clEnqueueReleaseGrallocObjectsIMG";
    EXPECT_CL(name + ".nothing", CL_SUCCESS, sync(queue(), 0, nullptr, 0, nullptr, nullptr));
    EXPECT_CL(name + ".null_queue", CL_INVALID_COMMAND_QUEUE,
              sync(nullptr, 1, &handle, 0, nullptr, nullptr));
    EXPECT_CL(name + ".no_count", CL_INVALID_VALUE, sync(queue(), 0, &handle, 0, nullptr, nullptr));
    EXPECT_CL(name + ".no_list", CL_INVALID_VALUE, sync(queue(), 1, nullptr, 0, nullptr, nullptr));
    EXPECT_CL(name + ".null_object", CL_INVALID_MEM_OBJECT,
              sync(queue(), 1, &null, 0, nullptr, nullptr));
    EXPECT_CL(name + ".ordinary_object", CL_INVALID_GRALLOC_OBJECT_IMG,
              sync(queue(), 1, &ordinary, 0, nullptr, nullptr));
    EXPECT_CL(name + ".events_without_count", CL_INVALID_EVENT_WAIT_LIST,
              sync(queue(), 1, &handle, 0, &no_event, nullptr));
    EXPECT_CL(name + ".count_without_events", CL_INVALID_EVENT_WAIT_LIST,
              sync(queue(), 1, &handle, 1, nullptr, nullptr));
    EXPECT_CL(name + ".null_event", CL_INVALID_EVENT_WAIT_LIST,
              sync(queue(), 1, &handle, 1, &no_event, nullptr));
    EXPECT_CL(name + ".foreign_event", CL_INVALID_CONTEXT,
              sync(queue(), 1, &handle, 1, foreign.AsList(), nullptr));
  }
  // None of that changed the state.
  EXPECT_CL("clEnqueueReleaseGrallocObjectsIMG.never_acquired",
            CL_GRALLOC_RESOURCE_NOT_ACQUIRED_IMG, Release(memory));
}

// A queue of another context: the object is none of its own.
TEST_F(GrallocRefusalTest, OtherContext) {
  const Allocation allocation(Backing::kSealed, 4096);
  const Own<cl_mem> memory = Import(allocation);
  const Own<cl_context> other = NewContext();
  const cl_queue_properties none[] = {0};
  const Own<cl_command_queue> queue =
      MAKE("clCreateCommandQueueWithProperties.other",
           clCreateCommandQueueWithProperties(other, device(), none, error));
  const cl_mem handle = memory;
  EXPECT_CL("clEnqueueAcquireGrallocObjectsIMG.other_context", CL_INVALID_MEM_OBJECT,
            clEnqueueAcquireGrallocObjectsIMG(queue, 1, &handle, 0, nullptr, nullptr));
}

// Acquiring again is ignored; releasing again is refused. A refused call changes no object's state.
TEST_F(GrallocRefusalTest, States) {
  const Allocation allocation(Backing::kSealed, 4096);
  const Own<cl_mem> first = Import(allocation), second = Import(allocation);
  const cl_mem both[] = {first, second};
  const cl_mem twice[] = {first, first};
  ASSERT_EQ(Acquire(first), CL_SUCCESS);
  EXPECT_CL("clEnqueueAcquireGrallocObjectsIMG.again", CL_SUCCESS, Acquire(first));
  Own<cl_event> ignored;
  EXPECT_CL("clEnqueueAcquireGrallocObjectsIMG.again_with_event", CL_SUCCESS,
            Acquire(first, ignored.Out()));
  EXPECT_EQ(clWaitForEvents(1, ignored.AsList()), CL_SUCCESS);
  EXPECT_CL("clEnqueueReleaseGrallocObjectsIMG.one_not_acquired",
            CL_GRALLOC_RESOURCE_NOT_ACQUIRED_IMG,
            clEnqueueReleaseGrallocObjectsIMG(queue(), 2, both, 0, nullptr, nullptr));
  EXPECT_EQ(AddOne(first, 64), CL_SUCCESS) << "it was not released";
  EXPECT_CL("clEnqueueReleaseGrallocObjectsIMG.same_object_twice",
            CL_GRALLOC_RESOURCE_NOT_ACQUIRED_IMG,
            clEnqueueReleaseGrallocObjectsIMG(queue(), 2, twice, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueAcquireGrallocObjectsIMG.some_acquired", CL_SUCCESS,
            clEnqueueAcquireGrallocObjectsIMG(queue(), 2, both, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueReleaseGrallocObjectsIMG.both", CL_SUCCESS,
            clEnqueueReleaseGrallocObjectsIMG(queue(), 2, both, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueReleaseGrallocObjectsIMG.again", CL_GRALLOC_RESOURCE_NOT_ACQUIRED_IMG,
            Release(first));
  EXPECT_CL("clEnqueueAcquireGrallocObjectsIMG.same_object_twice", CL_SUCCESS,
            clEnqueueAcquireGrallocObjectsIMG(queue(), 2, twice, 0, nullptr, nullptr));
  EXPECT_EQ(Release(first), CL_SUCCESS);
  Finish();
}

// Memory that cannot be written can be shared for reading only, and stays as it is.
TEST_F(GrallocRefusalTest, ReadOnlyMemory) {
  const Allocation allocation(Backing::kReadOnly, 4096);
  EXPECT_CREATE(
      "clCreateBuffer.gralloc_not_writable", CL_INVALID_GRALLOC_OBJECT_IMG,
      clCreateBuffer(context(), CL_MEM_USE_GRALLOC_PTR_IMG, 0, allocation.handle(), error));
  const Own<cl_mem> memory = Import(allocation, CL_MEM_READ_ONLY);
  const std::vector<cl_uint> before = allocation.Read();
  ASSERT_EQ(Acquire(memory), CL_SUCCESS);
  EXPECT_TRUE(Read<cl_uint>(memory, before.size()) == before);
  const cl_uint value = 1;
  EXPECT_CL("clEnqueueFillBuffer.gralloc_not_writable", CL_INVALID_OPERATION,
            clEnqueueFillBuffer(queue(), memory, &value, 4, 0, 4, 0, nullptr, nullptr));
  ASSERT_EQ(Release(memory), CL_SUCCESS);
  Finish();
  EXPECT_TRUE(allocation.Read() == before);
}

}  // namespace
}  // namespace sluice::conformance
