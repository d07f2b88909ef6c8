// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>

#include "tests/conformance/harness/fixtures.h"
#include "tests/conformance/harness/watchdog.h"

namespace sluice::conformance {
namespace {

using MemoryTest = WithQueue;

template <typename T>
T MemInfo(cl_mem memory, cl_mem_info param) {
  T value{};
  size_t bytes = 0;
  EXPECT_EQ(clGetMemObjectInfo(memory, param, sizeof(value), &value, &bytes), CL_SUCCESS) << param;
  EXPECT_EQ(bytes, sizeof(value)) << param;
  return value;
}

// Every sensible combination of flags makes a buffer.
TEST_F(MemoryTest, BufferIsCreatedWithEachFlag) {
  std::vector<cl_int> host = Counting(256);
  const size_t bytes = host.size() * sizeof(cl_int);
  for (cl_mem_flags access : {0, CL_MEM_READ_WRITE, CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY}) {
    for (cl_mem_flags host_access :
         {0, CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_WRITE_ONLY, CL_MEM_HOST_NO_ACCESS}) {
      const cl_mem_flags flags = access | host_access;
      MAKE("clCreateBuffer.plain", clCreateBuffer(context(), flags, bytes, nullptr, error));
      MAKE("clCreateBuffer.alloc",
           clCreateBuffer(context(), flags | CL_MEM_ALLOC_HOST_PTR, bytes, nullptr, error));
      MAKE("clCreateBuffer.copy",
           clCreateBuffer(context(), flags | CL_MEM_COPY_HOST_PTR, bytes, host.data(), error));
      MAKE("clCreateBuffer.alloc_copy",
           clCreateBuffer(context(), flags | CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR, bytes,
                          host.data(), error));
      MAKE("clCreateBuffer.use",
           clCreateBuffer(context(), flags | CL_MEM_USE_HOST_PTR, bytes, host.data(), error));
    }
  }
}

// Each wrong argument of clCreateBuffer has its code.
TEST_F(MemoryTest, BufferRefusals) {
  cl_int host[4] = {};
  EXPECT_CREATE("clCreateBuffer.null_context", CL_INVALID_CONTEXT,
                clCreateBuffer(nullptr, 0, 16, nullptr, error));
  EXPECT_CREATE("clCreateBuffer.zero_size", CL_INVALID_BUFFER_SIZE,
                clCreateBuffer(context(), 0, 0, nullptr, error));
  EXPECT_CREATE(
      "clCreateBuffer.huge", (AnyOf{CL_INVALID_BUFFER_SIZE, CL_MEM_OBJECT_ALLOCATION_FAILURE}),
      clCreateBuffer(context(), 0, std::numeric_limits<size_t>::max() / 2, nullptr, error));
  EXPECT_CREATE("clCreateBuffer.unknown_flag", CL_INVALID_VALUE,
                clCreateBuffer(context(), cl_mem_flags{1} << 40, 16, nullptr, error));
  EXPECT_CREATE(
      "clCreateBuffer.two_accesses", CL_INVALID_VALUE,
      clCreateBuffer(context(), CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, 16, nullptr, error));
  EXPECT_CREATE(
      "clCreateBuffer.read_write_and_read", CL_INVALID_VALUE,
      clCreateBuffer(context(), CL_MEM_READ_ONLY | CL_MEM_READ_WRITE, 16, nullptr, error));
  EXPECT_CREATE(
      "clCreateBuffer.use_and_alloc", CL_INVALID_VALUE,
      clCreateBuffer(context(), CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR, 16, host, error));
  EXPECT_CREATE(
      "clCreateBuffer.use_and_copy", CL_INVALID_VALUE,
      clCreateBuffer(context(), CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR, 16, host, error));
  EXPECT_CREATE("clCreateBuffer.two_host_accesses", CL_INVALID_VALUE,
                clCreateBuffer(context(), CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY, 16,
                               nullptr, error));
  EXPECT_CREATE(
      "clCreateBuffer.host_access_and_none", CL_INVALID_VALUE,
      clCreateBuffer(context(), CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS, 16, nullptr, error));
  EXPECT_CREATE("clCreateBuffer.use_null", CL_INVALID_HOST_PTR,
                clCreateBuffer(context(), CL_MEM_USE_HOST_PTR, 16, nullptr, error));
  EXPECT_CREATE("clCreateBuffer.copy_null", CL_INVALID_HOST_PTR,
                clCreateBuffer(context(), CL_MEM_COPY_HOST_PTR, 16, nullptr, error));
  EXPECT_CREATE("clCreateBuffer.unused_pointer", CL_INVALID_HOST_PTR,
                clCreateBuffer(context(), 0, 16, host, error));
}

// A size above the device's limit is refused, or is at least never a buffer that cannot be used.
TEST_F(MemoryTest, BufferAboveTheLimitIsRefused) {
  const cl_ulong limit = DeviceValue<cl_ulong>(device(), CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  EXPECT_CREATE("clCreateBuffer.above_limit",
                (AnyOf{CL_INVALID_BUFFER_SIZE, CL_MEM_OBJECT_ALLOCATION_FAILURE}),
                clCreateBuffer(context(), 0, limit + 1, nullptr, error));
}

// The property form does the same with no or empty properties, and refuses a property that it does
// not know.
TEST_F(MemoryTest, BufferWithProperties) {
  const cl_mem_properties empty[] = {0};
  const cl_mem_properties unknown[] = {0x7ffe, 1, 0};
  const Own<cl_mem> plain =
      MAKE("clCreateBufferWithProperties.none",
           clCreateBufferWithProperties(context(), nullptr, CL_MEM_READ_WRITE, 64, nullptr, error));
  const Own<cl_mem> listed =
      MAKE("clCreateBufferWithProperties.empty",
           clCreateBufferWithProperties(context(), empty, CL_MEM_READ_WRITE, 64, nullptr, error));
  EXPECT_CREATE(
      "clCreateBufferWithProperties.unknown_property", CL_INVALID_PROPERTY,
      clCreateBufferWithProperties(context(), unknown, CL_MEM_READ_WRITE, 64, nullptr, error));
  EXPECT_CREATE(
      "clCreateBufferWithProperties.zero_size", CL_INVALID_BUFFER_SIZE,
      clCreateBufferWithProperties(context(), nullptr, CL_MEM_READ_WRITE, 0, nullptr, error));
  EXPECT_CREATE(
      "clCreateBufferWithProperties.null_context", CL_INVALID_CONTEXT,
      clCreateBufferWithProperties(nullptr, nullptr, CL_MEM_READ_WRITE, 64, nullptr, error));
  cl_mem_properties back[4] = {9, 9, 9, 9};
  size_t bytes = 99;
  EXPECT_CL("clGetMemObjectInfo.no_properties", CL_SUCCESS,
            clGetMemObjectInfo(plain, CL_MEM_PROPERTIES, sizeof(back), back, &bytes));
  if (!Differs("clGetMemObjectInfo.no_properties_size")) {
    EXPECT_EQ(bytes, 0u) << "properties was NULL";
  }
  EXPECT_CL("clGetMemObjectInfo.empty_properties", CL_SUCCESS,
            clGetMemObjectInfo(listed, CL_MEM_PROPERTIES, sizeof(back), back, &bytes));
  if (!Differs("clGetMemObjectInfo.empty_properties_size")) {
    EXPECT_EQ(bytes, sizeof(cl_mem_properties));
    EXPECT_EQ(back[0], 0u);
  }
}

// A buffer answers queries of the arguments that it was made with.
TEST_F(MemoryTest, InfoTellsWhatItWasMadeOf) {
  cl_int host[16] = {};
  const Own<cl_mem> plain = Buffer(64, CL_MEM_READ_ONLY | CL_MEM_HOST_WRITE_ONLY);
  EXPECT_EQ(MemInfo<cl_mem_object_type>(plain, CL_MEM_TYPE),
            static_cast<cl_mem_object_type>(CL_MEM_OBJECT_BUFFER));
  EXPECT_EQ(MemInfo<cl_mem_flags>(plain, CL_MEM_FLAGS),
            static_cast<cl_mem_flags>(CL_MEM_READ_ONLY | CL_MEM_HOST_WRITE_ONLY));
  EXPECT_EQ(MemInfo<size_t>(plain, CL_MEM_SIZE), 64u);
  EXPECT_EQ(MemInfo<void*>(plain, CL_MEM_HOST_PTR), nullptr);
  EXPECT_EQ(MemInfo<cl_uint>(plain, CL_MEM_MAP_COUNT), 0u);
  EXPECT_EQ(MemInfo<cl_uint>(plain, CL_MEM_REFERENCE_COUNT), 1u);
  EXPECT_EQ(MemInfo<cl_context>(plain, CL_MEM_CONTEXT), context());
  EXPECT_EQ(MemInfo<cl_mem>(plain, CL_MEM_ASSOCIATED_MEMOBJECT), nullptr);
  EXPECT_EQ(MemInfo<size_t>(plain, CL_MEM_OFFSET), 0u);
  EXPECT_EQ(MemInfo<cl_bool>(plain, CL_MEM_USES_SVM_POINTER), static_cast<cl_bool>(CL_FALSE));
  const Own<cl_mem> used = Buffer(sizeof(host), CL_MEM_USE_HOST_PTR, host);
  EXPECT_EQ(MemInfo<void*>(used, CL_MEM_HOST_PTR), host);
  const Own<cl_mem> copied = Buffer(sizeof(host), CL_MEM_COPY_HOST_PTR, host);
  EXPECT_EQ(MemInfo<void*>(copied, CL_MEM_HOST_PTR), nullptr);
  const Own<cl_mem> unspecified = Buffer(64, 0);
  // "Return the flags argument value": 0 as it was given, or the default that it stands for.
  const auto flags = MemInfo<cl_mem_flags>(unspecified, CL_MEM_FLAGS);
  EXPECT_TRUE(flags == 0 || flags == CL_MEM_READ_WRITE) << flags;
}

// Wrong queries of a memory object are refused.
TEST_F(MemoryTest, InfoRefusals) {
  const Own<cl_mem> buffer = Buffer(64);
  char value[8];
  EXPECT_CL("clGetMemObjectInfo.unknown", CL_INVALID_VALUE,
            clGetMemObjectInfo(buffer, 0x7ffe, sizeof(value), value, nullptr));
  EXPECT_CL("clGetMemObjectInfo.too_small", CL_INVALID_VALUE,
            clGetMemObjectInfo(buffer, CL_MEM_SIZE, 1, value, nullptr));
  EXPECT_CL("clGetMemObjectInfo.null", CL_INVALID_MEM_OBJECT,
            clGetMemObjectInfo(nullptr, CL_MEM_SIZE, sizeof(value), value, nullptr));
}

// Retain and release count.
TEST_F(MemoryTest, IsCounted) {
  const Own<cl_mem> buffer = Buffer(64);
  EXPECT_CL("clRetainMemObject.plain", CL_SUCCESS, clRetainMemObject(buffer));
  EXPECT_EQ(MemInfo<cl_uint>(buffer, CL_MEM_REFERENCE_COUNT), 2u);
  EXPECT_CL("clReleaseMemObject.plain", CL_SUCCESS, clReleaseMemObject(buffer));
  EXPECT_EQ(MemInfo<cl_uint>(buffer, CL_MEM_REFERENCE_COUNT), 1u);
  EXPECT_CL("clRetainMemObject.null", CL_INVALID_MEM_OBJECT, clRetainMemObject(nullptr));
  EXPECT_CL("clReleaseMemObject.null", CL_INVALID_MEM_OBJECT, clReleaseMemObject(nullptr));
}

// The first bytes of a COPY_HOST_PTR buffer are the host's at creation; of a USE_HOST_PTR buffer,
// as well.
TEST_F(MemoryTest, HostPointerContentsArrive) {
  for (const size_t count : {size_t{1024}, size_t{16 << 10}, (size_t{1} << 20) + 3}) {
    std::vector<cl_int> host = Counting(count, 5);
    const std::vector<cl_int> before = host;
    const Own<cl_mem> copied = BufferOf(host);
    const Own<cl_mem> pinned = BufferOf(host, CL_MEM_ALLOC_HOST_PTR);
    host.assign(host.size(), 0);
    EXPECT_EQ(Read<cl_int>(copied, host.size()), before);
    EXPECT_EQ(Read<cl_int>(pinned, host.size()), before);
    std::vector<cl_int> used = before;
    const Own<cl_mem> wrapped =
        Buffer(used.size() * sizeof(cl_int), CL_MEM_USE_HOST_PTR, used.data());
    EXPECT_EQ(Read<cl_int>(wrapped, used.size()), before);
  }
}

// Also beyond what 31 bits count, wherever they have to travel.
TEST_F(MemoryTest, HostPointerContentsBeyondTwoGigabytesArrive) {
  const size_t bytes = (size_t{2} << 30) + (size_t{64} << 20) + 5;
  if (DeviceValue<cl_ulong>(device(), CL_DEVICE_MAX_MEM_ALLOC_SIZE) < bytes)
    GTEST_SKIP() << "the device has no buffers of " << bytes << " bytes";
  Watchdog::Allow(5);
  // Pages that nobody writes take no memory.
  const std::unique_ptr<cl_uchar, void (*)(void*)> host(
      static_cast<cl_uchar*>(std::calloc(bytes, 1)), &std::free);
  ASSERT_NE(host, nullptr);
  const size_t marks[] = {0, (size_t{1} << 31) - 1, size_t{1} << 31, bytes - 1};
  for (const size_t mark : marks) host.get()[mark] = static_cast<cl_uchar>(mark % 251 + 1);
  const Own<cl_mem> buffer = Buffer(bytes, CL_MEM_COPY_HOST_PTR, host.get());
  for (const size_t mark : marks) {
    cl_uchar there[2] = {};
    const size_t from = mark == 0 ? 0 : mark - 1;
    ASSERT_CL("clEnqueueReadBuffer.far", CL_SUCCESS,
              clEnqueueReadBuffer(queue(), buffer, CL_TRUE, from, 2, there, 0, nullptr, nullptr));
    EXPECT_EQ(there[0], host.get()[from]) << mark;
    EXPECT_EQ(there[1], host.get()[from + 1]) << mark;
  }
}

struct Notes {
  std::atomic<int> calls{0};
  int order[4] = {};
  cl_context context = nullptr;
  std::atomic<cl_int> inner_code{-9999};
};
struct Note {
  Notes* notes;
  int number;
};

void CL_CALLBACK CountDestruction(cl_mem, void* count) { ++*static_cast<std::atomic<int>*>(count); }

void CL_CALLBACK NoteDestruction(cl_mem, void* data) {
  auto* note = static_cast<Note*>(data);
  Notes* notes = note->notes;
  const int at = notes->calls.load();
  notes->order[at] = note->number;
  if (note->number == 1) {
    // Callbacks may call OpenCL.
    cl_uint count = 0;
    notes->inner_code =
        clGetContextInfo(notes->context, CL_CONTEXT_NUM_DEVICES, sizeof(count), &count, nullptr);
  }
  notes->calls.store(at + 1);
}

// Destructor callbacks run once each, last registered first, and may call OpenCL.
TEST_F(MemoryTest, DestructorCallbacksRunInReverseOrder) {
  Notes notes;
  notes.context = context();
  Note entries[3] = {{&notes, 1}, {&notes, 2}, {&notes, 3}};
  Own<cl_mem> buffer = Buffer(64);
  for (Note& entry : entries) {
    ASSERT_CL("clSetMemObjectDestructorCallback.plain", CL_SUCCESS,
              clSetMemObjectDestructorCallback(buffer, &NoteDestruction, &entry));
  }
  buffer.Reset();
  while (notes.calls.load() < 3) std::this_thread::yield();
  EXPECT_EQ(notes.order[0], 3);
  EXPECT_EQ(notes.order[1], 2);
  EXPECT_EQ(notes.order[2], 1);
  EXPECT_EQ(notes.inner_code.load(), CL_SUCCESS);
}

// A destructor callback does not run while a command still uses the object, and runs after it.
TEST_F(MemoryTest, DestructorCallbackWaitsForCommands) {
  Notes notes;
  notes.context = context();
  Note entry{&notes, 2};
  std::vector<cl_int> host = Counting(256);
  const Own<cl_event> gate = UserEvent();
  Own<cl_mem> buffer = Buffer(host.size() * sizeof(cl_int), CL_MEM_USE_HOST_PTR, host.data());
  ASSERT_EQ(clSetMemObjectDestructorCallback(buffer, &NoteDestruction, &entry), CL_SUCCESS);
  const cl_int pattern = 3;
  ASSERT_EQ(clEnqueueFillBuffer(queue(), buffer, &pattern, sizeof(pattern), 0,
                                host.size() * sizeof(cl_int), 1, gate.AsList(), nullptr),
            CL_SUCCESS);
  ASSERT_EQ(clFlush(queue()), CL_SUCCESS);
  buffer.Reset();
  EXPECT_EQ(notes.calls.load(), 0) << "the fill still needs the host memory";
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  Finish();
  while (notes.calls.load() < 1) std::this_thread::yield();
}

// A destructor callback needs an object and a function.
TEST_F(MemoryTest, DestructorCallbackRefusals) {
  const Own<cl_mem> buffer = Buffer(64);
  EXPECT_CL("clSetMemObjectDestructorCallback.null_function", CL_INVALID_VALUE,
            clSetMemObjectDestructorCallback(buffer, nullptr, nullptr));
  EXPECT_CL("clSetMemObjectDestructorCallback.null_object", CL_INVALID_MEM_OBJECT,
            clSetMemObjectDestructorCallback(nullptr, &NoteDestruction, nullptr));
}

// Migration with each flag keeps the contents, except where they are declared undefined.
TEST_F(MemoryTest, MigrationKeepsContents) {
  const std::vector<cl_int> values = Counting(1024);
  const Own<cl_mem> first = BufferOf(values);
  const Own<cl_mem> second = BufferOf(values);
  const cl_mem both[] = {first, second};
  EXPECT_CL("clEnqueueMigrateMemObjects.to_device", CL_SUCCESS,
            clEnqueueMigrateMemObjects(queue(), 2, both, 0, 0, nullptr, nullptr));
  Own<cl_event> event;
  EXPECT_CL("clEnqueueMigrateMemObjects.to_host", CL_SUCCESS,
            clEnqueueMigrateMemObjects(queue(), 2, both, CL_MIGRATE_MEM_OBJECT_HOST, 0, nullptr,
                                       event.Out()));
  EXPECT_EQ(clWaitForEvents(1, event.AsList()), CL_SUCCESS);
  EXPECT_EQ(Read<cl_int>(first, values.size()), values);
  EXPECT_EQ(Read<cl_int>(second, values.size()), values);
  EXPECT_CL("clEnqueueMigrateMemObjects.undefined", CL_SUCCESS,
            clEnqueueMigrateMemObjects(queue(), 1, both, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0,
                                       nullptr, nullptr));
  Finish();
}

// Each wrong argument of a migration has its code.
TEST_F(MemoryTest, MigrationRefusals) {
  const Own<cl_mem> buffer = Buffer(64);
  const cl_mem list[] = {buffer, nullptr};
  EXPECT_CL("clEnqueueMigrateMemObjects.null_queue", CL_INVALID_COMMAND_QUEUE,
            clEnqueueMigrateMemObjects(nullptr, 1, list, 0, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueMigrateMemObjects.no_objects", CL_INVALID_VALUE,
            clEnqueueMigrateMemObjects(queue(), 0, list, 0, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueMigrateMemObjects.null_list", CL_INVALID_VALUE,
            clEnqueueMigrateMemObjects(queue(), 1, nullptr, 0, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueMigrateMemObjects.null_object", CL_INVALID_MEM_OBJECT,
            clEnqueueMigrateMemObjects(queue(), 2, list, 0, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueMigrateMemObjects.unknown_flag", CL_INVALID_VALUE,
            clEnqueueMigrateMemObjects(queue(), 1, list, cl_mem_migration_flags{1} << 20, 0,
                                       nullptr, nullptr));
  const Own<cl_context> other = NewContext();
  const Own<cl_mem> foreign =
      MAKE("clCreateBuffer.foreign", clCreateBuffer(other, CL_MEM_READ_WRITE, 64, nullptr, error));
  const cl_mem foreign_list[] = {foreign};
  EXPECT_CL("clEnqueueMigrateMemObjects.foreign_object", CL_INVALID_CONTEXT,
            clEnqueueMigrateMemObjects(queue(), 1, foreign_list, 0, 0, nullptr, nullptr));
}

// A mapping keeps its object, as with PoCL and NVIDIA's driver: what the application has released
// can be read and written through the pointer, and unmapped by the handle, which ends it.
TEST_F(MemoryTest, ReleasedWhileMapped) {
  if (!TheHarness().IsSluice() &&
      DeviceValue<cl_device_type>(device(), CL_DEVICE_TYPE) != CL_DEVICE_TYPE_CPU) {
    GTEST_SKIP() << "NVIDIA's driver (580) lets go of it at its release";
  }
  if (!MayRun("clReleaseMemObject.mapped")) GTEST_SKIP() << "see the table of differences";
  constexpr size_t kBytes = 16 << 20;
  std::vector<cl_uchar> host(kBytes);
  for (const cl_mem_flags flags :
       {cl_mem_flags{0}, cl_mem_flags{CL_MEM_ALLOC_HOST_PTR}, cl_mem_flags{CL_MEM_USE_HOST_PTR}}) {
    SCOPED_TRACE(flags);
    Own<cl_mem> buffer = Buffer(kBytes, CL_MEM_READ_WRITE | flags,
                                flags == CL_MEM_USE_HOST_PTR ? host.data() : nullptr);
    const cl_mem handle = buffer;
    const auto fill = [this](cl_mem memory, cl_uchar value) {
      return clEnqueueFillBuffer(queue(), memory, &value, 1, 0, kBytes, 0, nullptr, nullptr);
    };
    EXPECT_EQ(fill(handle, 7), CL_SUCCESS);
    cl_int code = CL_INVALID_VALUE;
    auto* const mapped = static_cast<cl_uchar*>(
        clEnqueueMapBuffer(queue(), handle, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, kBytes, 0,
                           nullptr, nullptr, &code));
    ASSERT_CL("clEnqueueMapBuffer.then_released", CL_SUCCESS, code);
    std::atomic<int> destroyed{0};
    EXPECT_EQ(clSetMemObjectDestructorCallback(handle, &CountDestruction, &destroyed), CL_SUCCESS);
    EXPECT_CL("clReleaseMemObject.mapped", CL_SUCCESS, clReleaseMemObject(buffer.Give()));
    // Takes the place of what is free.
    const Own<cl_mem> next = Buffer(kBytes);
    EXPECT_EQ(fill(next, 9), CL_SUCCESS);
    Finish();
    EXPECT_EQ(std::count(mapped, mapped + kBytes, cl_uchar{7}), static_cast<ptrdiff_t>(kBytes));
    std::fill_n(mapped, kBytes, cl_uchar{8});
    EXPECT_EQ(Read<cl_uchar>(next, kBytes), std::vector<cl_uchar>(kBytes, 9));
    EXPECT_EQ(destroyed.load(), 0);
    EXPECT_CL("clEnqueueUnmapMemObject.released", CL_SUCCESS,
              clEnqueueUnmapMemObject(queue(), handle, mapped, 0, nullptr, nullptr));
    Finish();
    while (destroyed.load() == 0) std::this_thread::yield();
  }
}

}  // namespace
}  // namespace sluice::conformance
