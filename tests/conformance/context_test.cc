// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/conformance/harness/fixtures.h"

namespace sluice::conformance {
namespace {

using ContextTest = WithPlatform;

void CL_CALLBACK IgnoreNotice(const char*, const void*, size_t, void*) {}

cl_uint ReferencesOf(cl_context context) {
  cl_uint count = 0;
  EXPECT_EQ(clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, sizeof(count), &count, nullptr),
            CL_SUCCESS);
  return count;
}

// CL_CONTEXT_MEMORY_INITIALIZE_KHR: only where every device has cl_khr_initialize_memory,
// "otherwise, context creation fails with error code of CL_INVALID_PROPERTY" (section 9.11.1), and
// only with its two bits.
TEST_F(ContextTest, MemoryInitialize) {
  if (!TheHarness().IsSluice()) GTEST_SKIP() << "drivers without the extension answer as they like";
  const bool has = HasDeviceExtension(device(), "cl_khr_initialize_memory");
  const cl_device_id one = device();
  for (const cl_context_properties bits : {1, 2, 3, 4, 7}) {
    SCOPED_TRACE(bits);
    const cl_context_properties list[] = {CL_CONTEXT_MEMORY_INITIALIZE_KHR, bits, 0};
    cl_int status = CL_SUCCESS;
    const Own<cl_context> context(clCreateContext(list, 1, &one, nullptr, nullptr, &status));
    EXPECT_EQ(status, has && bits <= 3 ? CL_SUCCESS : CL_INVALID_PROPERTY);
    if (status != CL_SUCCESS) continue;
    cl_context_properties told[3] = {};
    EXPECT_EQ(clGetContextInfo(context, CL_CONTEXT_PROPERTIES, sizeof(told), told, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(told[0], list[0]);
    EXPECT_EQ(told[1], bits);
  }
}

// A context can be made with no properties, with its platform, and with a notify function.
TEST_F(ContextTest, IsCreated) {
  const cl_device_id one = device();
  MAKE("clCreateContext.no_properties", clCreateContext(nullptr, 1, &one, nullptr, nullptr, error));
  const cl_context_properties empty[] = {0};
  MAKE("clCreateContext.empty_properties",
       clCreateContext(empty, 1, &one, nullptr, nullptr, error));
  const cl_context_properties full[] = {CL_CONTEXT_PLATFORM,
                                        reinterpret_cast<cl_context_properties>(platform()),
                                        CL_CONTEXT_INTEROP_USER_SYNC, CL_TRUE, 0};
  MAKE("clCreateContext.full_properties",
       clCreateContext(full, 1, &one, &IgnoreNotice, nullptr, error));
  const cl_device_id twice[] = {one, one};
  const Own<cl_context> context = MAKE("clCreateContext.repeated_device",
                                       clCreateContext(nullptr, 2, twice, nullptr, nullptr, error));
  if (Differs("clCreateContext.repeated_device")) return;
  cl_uint count = 0;
  EXPECT_CL("clGetContextInfo.num_devices", CL_SUCCESS,
            clGetContextInfo(context, CL_CONTEXT_NUM_DEVICES, sizeof(count), &count, nullptr));
  EXPECT_EQ(count, 1u) << "duplicate devices are ignored";
}

// The error may be left out; the handle alone then tells.
TEST_F(ContextTest, ErrorPointerIsOptional) {
  const cl_device_id one = device();
  const Own<cl_context> context(clCreateContext(nullptr, 1, &one, nullptr, nullptr, nullptr));
  EXPECT_NE(context.get(), nullptr);
  EXPECT_EQ(clCreateContext(nullptr, 0, &one, nullptr, nullptr, nullptr), nullptr);
}

// Each wrong argument of clCreateContext has its code.
TEST_F(ContextTest, CreateRefusals) {
  const cl_device_id one = device();
  EXPECT_CREATE("clCreateContext.no_devices", CL_INVALID_VALUE,
                clCreateContext(nullptr, 0, &one, nullptr, nullptr, error));
  EXPECT_CREATE("clCreateContext.null_devices", CL_INVALID_VALUE,
                clCreateContext(nullptr, 1, nullptr, nullptr, nullptr, error));
  int user = 0;
  EXPECT_CREATE("clCreateContext.data_without_notify", CL_INVALID_VALUE,
                clCreateContext(nullptr, 1, &one, nullptr, &user, error));
  const cl_device_id with_null[] = {one, nullptr};
  EXPECT_CREATE("clCreateContext.null_device", CL_INVALID_DEVICE,
                clCreateContext(nullptr, 2, with_null, nullptr, nullptr, error));
  const cl_context_properties unknown[] = {0x7ffe, 1, 0};
  EXPECT_CREATE("clCreateContext.unknown_property", CL_INVALID_PROPERTY,
                clCreateContext(unknown, 1, &one, nullptr, nullptr, error));
  const cl_context_properties doubled[] = {
      CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(platform()), CL_CONTEXT_PLATFORM,
      reinterpret_cast<cl_context_properties>(platform()), 0};
  EXPECT_CREATE("clCreateContext.repeated_property", CL_INVALID_PROPERTY,
                clCreateContext(doubled, 1, &one, nullptr, nullptr, error));
  const cl_context_properties bad_value[] = {CL_CONTEXT_INTEROP_USER_SYNC, 7, 0};
  EXPECT_CREATE("clCreateContext.bad_property_value", CL_INVALID_PROPERTY,
                clCreateContext(bad_value, 1, &one, nullptr, nullptr, error));
  const cl_context_properties no_platform[] = {CL_CONTEXT_PLATFORM, 0, 0};
  EXPECT_CREATE("clCreateContext.null_platform", CL_INVALID_PLATFORM,
                clCreateContext(no_platform, 1, &one, nullptr, nullptr, error));
}

// A context made by type holds devices of that type.
TEST_F(ContextTest, IsCreatedFromType) {
  const cl_context_properties properties[] = {
      CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(platform()), 0};
  const cl_device_type type =
      DeviceValue<cl_device_type>(device(), CL_DEVICE_TYPE) & ~CL_DEVICE_TYPE_DEFAULT;
  for (cl_device_type wanted : {type, static_cast<cl_device_type>(CL_DEVICE_TYPE_ALL),
                                static_cast<cl_device_type>(CL_DEVICE_TYPE_DEFAULT)}) {
    const Own<cl_context> context =
        MAKE("clCreateContextFromType.plain",
             clCreateContextFromType(properties, wanted, nullptr, nullptr, error));
    cl_device_id first[64] = {};
    size_t bytes = 0;
    EXPECT_CL("clGetContextInfo.devices", CL_SUCCESS,
              clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof(first), first, &bytes));
    ASSERT_GE(bytes, sizeof(cl_device_id));
    EXPECT_NE(first[0], nullptr);
  }
}

// Each wrong argument of clCreateContextFromType has its code.
TEST_F(ContextTest, CreateFromTypeRefusals) {
  const cl_context_properties properties[] = {
      CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(platform()), 0};
  EXPECT_CREATE("clCreateContextFromType.no_type", CL_INVALID_DEVICE_TYPE,
                clCreateContextFromType(properties, 0, nullptr, nullptr, error));
  int user = 0;
  EXPECT_CREATE("clCreateContextFromType.data_without_notify", CL_INVALID_VALUE,
                clCreateContextFromType(properties, CL_DEVICE_TYPE_ALL, nullptr, &user, error));
  const cl_context_properties unknown[] = {
      CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(platform()), 0x7ffe, 1, 0};
  EXPECT_CREATE("clCreateContextFromType.unknown_property", CL_INVALID_PROPERTY,
                clCreateContextFromType(unknown, CL_DEVICE_TYPE_ALL, nullptr, nullptr, error));
  const cl_context_properties nowhere[] = {CL_CONTEXT_PLATFORM, 0, 0};
  EXPECT_CREATE("clCreateContextFromType.null_platform", CL_INVALID_PLATFORM,
                clCreateContextFromType(nowhere, CL_DEVICE_TYPE_ALL, nullptr, nullptr, error));
  const cl_context_properties neither[] = {CL_CONTEXT_PLATFORM,
                                           reinterpret_cast<cl_context_properties>(platform()),
                                           CL_CONTEXT_INTEROP_USER_SYNC, 7, 0};
  EXPECT_CREATE("clCreateContextFromType.bad_property_value", CL_INVALID_PROPERTY,
                clCreateContextFromType(neither, CL_DEVICE_TYPE_ALL, nullptr, nullptr, error));
  for (cl_device_type type : {CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_ACCELERATOR,
                              CL_DEVICE_TYPE_CUSTOM}) {
    cl_uint count = 0;
    if (clGetDeviceIDs(platform(), type, 0, nullptr, &count) == CL_SUCCESS) continue;
    const bool custom = type == CL_DEVICE_TYPE_CUSTOM;
    EXPECT_CREATE(custom ? "clCreateContextFromType.no_custom_device"
                         : "clCreateContextFromType.no_such_device",
                  CL_DEVICE_NOT_FOUND,
                  clCreateContextFromType(properties, type, nullptr, nullptr, error));
  }
}

// A context answers queries of its properties and devices.
TEST_F(ContextTest, InfoTellsWhatItWasMadeOf) {
  const cl_context_properties properties[] = {
      CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(platform()), 0};
  const cl_device_id one = device();
  const Own<cl_context> context = MAKE(
      "clCreateContext.for_info", clCreateContext(properties, 1, &one, nullptr, nullptr, error));
  cl_uint count = 0;
  size_t bytes = 0;
  EXPECT_CL("clGetContextInfo.num_devices", CL_SUCCESS,
            clGetContextInfo(context, CL_CONTEXT_NUM_DEVICES, sizeof(count), &count, &bytes));
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(bytes, sizeof(cl_uint));
  cl_device_id seen = nullptr;
  EXPECT_CL("clGetContextInfo.devices", CL_SUCCESS,
            clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof(seen), &seen, &bytes));
  EXPECT_EQ(seen, one);
  EXPECT_EQ(bytes, sizeof(cl_device_id));
  cl_context_properties back[8] = {};
  EXPECT_CL("clGetContextInfo.properties", CL_SUCCESS,
            clGetContextInfo(context, CL_CONTEXT_PROPERTIES, sizeof(back), back, &bytes));
  ASSERT_EQ(bytes, sizeof(properties));
  EXPECT_TRUE(std::equal(std::begin(properties), std::end(properties), back));

  const Own<cl_context> bare = MAKE("clCreateContext.no_properties",
                                    clCreateContext(nullptr, 1, &one, nullptr, nullptr, error));
  EXPECT_CL("clGetContextInfo.no_properties", CL_SUCCESS,
            clGetContextInfo(bare, CL_CONTEXT_PROPERTIES, sizeof(back), back, &bytes));
  // The specification allows an empty list to be answered as nothing or as its terminator alone.
  EXPECT_TRUE(bytes == 0 || (bytes == sizeof(cl_context_properties) && back[0] == 0)) << bytes;
}

// Wrong queries of a context are refused.
TEST_F(ContextTest, InfoRefusals) {
  const Own<cl_context> context = NewContext();
  char value[8];
  EXPECT_CL("clGetContextInfo.unknown", CL_INVALID_VALUE,
            clGetContextInfo(context, 0x7ffe, sizeof(value), value, nullptr));
  EXPECT_CL("clGetContextInfo.too_small", CL_INVALID_VALUE,
            clGetContextInfo(context, CL_CONTEXT_DEVICES, 1, value, nullptr));
  EXPECT_CL("clGetContextInfo.null_context", CL_INVALID_CONTEXT,
            clGetContextInfo(nullptr, CL_CONTEXT_DEVICES, sizeof(value), value, nullptr));
}

// Retain and release count; objects of a context keep it without showing in the count's meaning.
TEST_F(ContextTest, IsCounted) {
  const Own<cl_context> context = NewContext();
  EXPECT_EQ(ReferencesOf(context), 1u);
  EXPECT_CL("clRetainContext.plain", CL_SUCCESS, clRetainContext(context));
  EXPECT_EQ(ReferencesOf(context), 2u);
  EXPECT_CL("clReleaseContext.plain", CL_SUCCESS, clReleaseContext(context));
  EXPECT_EQ(ReferencesOf(context), 1u);
  EXPECT_CL("clRetainContext.null", CL_INVALID_CONTEXT, clRetainContext(nullptr));
  EXPECT_CL("clReleaseContext.null", CL_INVALID_CONTEXT, clReleaseContext(nullptr));
}

// A context that the application released stays alive while a buffer or a queue of it does.
TEST_F(ContextTest, LivesWhileItsObjectsDo) {
  Own<cl_context> context = NewContext();
  const Own<cl_command_queue> queue =
      MAKE("clCreateCommandQueueWithProperties.keeps_context",
           clCreateCommandQueueWithProperties(context, device(), nullptr, error));
  const Own<cl_mem> buffer =
      MAKE("clCreateBuffer.keeps_context",
           clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(cl_int), nullptr, error));
  const cl_context raw = context.get();
  context.Reset();
  cl_context seen = nullptr;
  EXPECT_CL("clGetMemObjectInfo.context", CL_SUCCESS,
            clGetMemObjectInfo(buffer, CL_MEM_CONTEXT, sizeof(seen), &seen, nullptr));
  EXPECT_EQ(seen, raw);
  const cl_int sent = 7;
  cl_int back = 0;
  EXPECT_EQ(
      clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, sizeof(sent), &sent, 0, nullptr, nullptr),
      CL_SUCCESS);
  EXPECT_EQ(
      clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(back), &back, 0, nullptr, nullptr),
      CL_SUCCESS);
  EXPECT_EQ(back, sent);
}

struct DestructorLog {
  std::atomic<int> calls{0};
  int order[4] = {};
};
struct DestructorEntry {
  DestructorLog* log;
  int number;
};

void CL_CALLBACK NoteDestruction(cl_context, void* data) {
  auto* entry = static_cast<DestructorEntry*>(data);
  entry->log->order[entry->log->calls.load()] = entry->number;
  entry->log->calls.fetch_add(1);
}

// Destructor callbacks run in reverse order of registration, once, when the last reference of any
// kind is gone.
TEST_F(ContextTest, DestructorCallbacksRunInReverseOrder) {
  DestructorLog log;
  DestructorEntry entries[3] = {{&log, 1}, {&log, 2}, {&log, 3}};
  Own<cl_context> context = NewContext();
  for (DestructorEntry& entry : entries) {
    ASSERT_CL("clSetContextDestructorCallback.plain", CL_SUCCESS,
              clSetContextDestructorCallback(context, &NoteDestruction, &entry));
  }
  Own<cl_mem> buffer =
      MAKE("clCreateBuffer.keeps_context",
           clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(cl_int), nullptr, error));
  context.Reset();
  EXPECT_EQ(log.calls.load(), 0) << "a buffer still holds the context";
  buffer.Reset();
  // The callback may come on another thread; the watchdog bounds the wait.
  while (log.calls.load() < 3) std::this_thread::yield();
  EXPECT_EQ(log.order[0], 3);
  EXPECT_EQ(log.order[1], 2);
  EXPECT_EQ(log.order[2], 1);
}

void CL_CALLBACK NoteMemoryDestruction(cl_mem, void* data) { NoteDestruction(nullptr, data); }

// Section 4.4: a context is deleted when the objects attached to it are released, so that its
// callback comes behind those of memory objects which commands still use when all is released.
TEST_F(ContextTest, DestructorCallbackComesLast) {
  for (int round = 0; round < 20; ++round) {
    DestructorLog log;
    DestructorEntry of_memory{&log, 1};
    DestructorEntry of_context{&log, 2};
    Own<cl_context> context = NewContext();
    ASSERT_EQ(clSetContextDestructorCallback(context, &NoteDestruction, &of_context), CL_SUCCESS);
    cl_int status = CL_SUCCESS;
    Own<cl_command_queue> queue(
        clCreateCommandQueueWithProperties(context, device(), nullptr, &status));
    ASSERT_EQ(status, CL_SUCCESS);
    constexpr size_t kBytes = 1 << 20;
    Own<cl_mem> buffer(clCreateBuffer(context, CL_MEM_READ_WRITE, kBytes, nullptr, &status));
    ASSERT_EQ(status, CL_SUCCESS);
    ASSERT_EQ(clSetMemObjectDestructorCallback(buffer, &NoteMemoryDestruction, &of_memory),
              CL_SUCCESS);
    const cl_uint word = 1;
    for (int i = 0; i < 20; ++i) {
      ASSERT_EQ(
          clEnqueueFillBuffer(queue, buffer, &word, sizeof(word), 0, kBytes, 0, nullptr, nullptr),
          CL_SUCCESS);
    }
    buffer.Reset();
    queue.Reset();
    context.Reset();
    while (log.calls.load() < 2) std::this_thread::yield();
    EXPECT_EQ(log.order[0], 1);
    EXPECT_EQ(log.order[1], 2);
  }
}

// A destructor callback needs a context and a function.
TEST_F(ContextTest, DestructorCallbackRefusals) {
  const Own<cl_context> context = NewContext();
  EXPECT_CL("clSetContextDestructorCallback.null_function", CL_INVALID_VALUE,
            clSetContextDestructorCallback(context, nullptr, nullptr));
  EXPECT_CL("clSetContextDestructorCallback.null_context", CL_INVALID_CONTEXT,
            clSetContextDestructorCallback(nullptr, &NoteDestruction, nullptr));
}

}  // namespace
}  // namespace sluice::conformance
