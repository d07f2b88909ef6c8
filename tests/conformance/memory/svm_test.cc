// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "tests/conformance/harness/svm_fixture.h"

namespace sluice::conformance {
namespace {

// Where the device has none, every entry says so.
class SvmTest : public WithSvm {};

// Without SVM an allocation gives nothing and every command is refused.
TEST_F(SvmTest, UnsupportedIsSaid) {
  if (HasSvm()) GTEST_SKIP() << "the device has SVM";
  EXPECT_EQ(clSVMAlloc(context(), CL_MEM_READ_WRITE, 64, 0), nullptr);
  cl_int word = 0, pattern = 1;
  void* list[] = {&word};
  const void* const_list[] = {&word};
  clSVMFree(context(), nullptr);
  EXPECT_CL("clEnqueueSVMFree.unsupported", CL_INVALID_OPERATION,
            clEnqueueSVMFree(queue(), 1, list, nullptr, nullptr, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueSVMMemcpy.unsupported", CL_INVALID_OPERATION,
            clEnqueueSVMMemcpy(queue(), CL_TRUE, &word, &pattern, 4, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueSVMMemFill.unsupported", CL_INVALID_OPERATION,
            clEnqueueSVMMemFill(queue(), &word, &pattern, 4, 4, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueSVMMap.unsupported", CL_INVALID_OPERATION,
            clEnqueueSVMMap(queue(), CL_TRUE, CL_MAP_READ, &word, 4, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueSVMUnmap.unsupported", CL_INVALID_OPERATION,
            clEnqueueSVMUnmap(queue(), &word, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueSVMMigrateMem.unsupported", CL_INVALID_OPERATION,
            clEnqueueSVMMigrateMem(queue(), 1, const_list, nullptr, 0, 0, nullptr, nullptr));
  const Own<cl_kernel> kernel = Kernel("add_one");
  EXPECT_CL("clSetKernelArgSVMPointer.unsupported", CL_INVALID_OPERATION,
            clSetKernelArgSVMPointer(kernel, 0, &word));
  EXPECT_CL("clSetKernelExecInfo.unsupported", CL_INVALID_OPERATION,
            clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof(list), list));
}

// Null handles are refused whether there is SVM or not.
TEST_F(SvmTest, NullHandles) {
  cl_int word = 0;
  void* list[] = {&word};
  const void* const_list[] = {&word};
  EXPECT_EQ(clSVMAlloc(nullptr, CL_MEM_READ_WRITE, 64, 0), nullptr);
  EXPECT_CL("clEnqueueSVMFree.null_queue", CL_INVALID_COMMAND_QUEUE,
            clEnqueueSVMFree(nullptr, 1, list, nullptr, nullptr, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueSVMMemcpy.null_queue", CL_INVALID_COMMAND_QUEUE,
            clEnqueueSVMMemcpy(nullptr, CL_TRUE, &word, &word, 4, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueSVMMemFill.null_queue", CL_INVALID_COMMAND_QUEUE,
            clEnqueueSVMMemFill(nullptr, &word, &word, 4, 4, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueSVMMap.null_queue", CL_INVALID_COMMAND_QUEUE,
            clEnqueueSVMMap(nullptr, CL_TRUE, CL_MAP_READ, &word, 4, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueSVMUnmap.null_queue", CL_INVALID_COMMAND_QUEUE,
            clEnqueueSVMUnmap(nullptr, &word, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueSVMMigrateMem.null_queue", CL_INVALID_COMMAND_QUEUE,
            clEnqueueSVMMigrateMem(nullptr, 1, const_list, nullptr, 0, 0, nullptr, nullptr));
  EXPECT_CL("clSetKernelArgSVMPointer.null_kernel", CL_INVALID_KERNEL,
            clSetKernelArgSVMPointer(nullptr, 0, &word));
  EXPECT_CL("clSetKernelExecInfo.null_kernel", CL_INVALID_KERNEL,
            clSetKernelExecInfo(nullptr, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof(list), list));
}

// A kernel sees what the host writes while it has the memory mapped, and the other way round.
TEST_F(SvmTest, HostAndDeviceShareMemory) {
  REQUIRE_SVM();
  cl_int* memory = Alloc();
  ASSERT_NE(memory, nullptr);
  ASSERT_CL("clEnqueueSVMMap.write", CL_SUCCESS, Map(memory, CL_MAP_WRITE));
  for (size_t i = 0; i < kCount; ++i) memory[i] = static_cast<cl_int>(i);
  ASSERT_CL("clEnqueueSVMUnmap.plain", CL_SUCCESS, Unmap(memory));
  const Own<cl_kernel> kernel = Kernel("add_one");
  ASSERT_CL("clSetKernelArgSVMPointer.plain", CL_SUCCESS,
            clSetKernelArgSVMPointer(kernel, 0, memory));
  ASSERT_EQ(Launch(queue(), kernel, kCount), CL_SUCCESS);
  ASSERT_CL("clEnqueueSVMMap.read", CL_SUCCESS, Map(memory, CL_MAP_READ));
  EXPECT_TRUE(std::equal(memory, memory + kCount, Counting(kCount, 1).begin()));
  ASSERT_EQ(Unmap(memory), CL_SUCCESS);
  Finish();
  clSVMFree(context(), memory);
}

// A pointer inside shared memory means the same on both sides: a list built by the host is walked
// by a kernel.
TEST_F(SvmTest, PointersMeanTheSame) {
  REQUIRE_SVM();
  const Own<cl_program> program = Program(
      "typedef struct Node { global struct Node* next; int value; } Node;"
      "kernel void walk(global Node* node, global int* sum) { *sum = 0; while (node) { *sum += "
      "node->value;"
      " node = node->next; } }");
  struct Node {
    Node* next;
    cl_int value;
  };
  void* first = clSVMAlloc(context(), CL_MEM_READ_WRITE, 16 * sizeof(Node), 0);
  void* second = clSVMAlloc(context(), CL_MEM_READ_WRITE, 16 * sizeof(Node), 0);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  for (void* memory : {first, second}) {
    ASSERT_EQ(clEnqueueSVMMap(queue(), CL_TRUE, CL_MAP_WRITE, memory, 16 * sizeof(Node), 0, nullptr,
                              nullptr),
              CL_SUCCESS);
  }
  Node* nodes[] = {static_cast<Node*>(first), static_cast<Node*>(second) + 3,
                   static_cast<Node*>(first) + 5};
  for (cl_int i = 0; i < 3; ++i) {
    nodes[i]->value = 10 + i;
    nodes[i]->next = i < 2 ? nodes[i + 1] : nullptr;
  }
  for (void* memory : {first, second}) ASSERT_EQ(Unmap(memory), CL_SUCCESS);
  const Own<cl_kernel> kernel = Kernel(program, "walk");
  const Own<cl_mem> sum = Buffer(sizeof(cl_int));
  ASSERT_EQ(clSetKernelArgSVMPointer(kernel, 0, nodes[0]), CL_SUCCESS);
  SetArg(kernel, 1, sum);
  const void* others[] = {second};
  ASSERT_CL("clSetKernelExecInfo.svm_ptrs", CL_SUCCESS,
            clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof(others), others));
  ASSERT_EQ(Launch(queue(), kernel, 1), CL_SUCCESS);
  EXPECT_EQ(Read<cl_int>(sum, 1)[0], 33);
  clSVMFree(context(), first);
  clSVMFree(context(), second);
}

// The set of pointers that a kernel may follow can be empty, and NULL is no allocation: neither is
// an error, and each takes back the set before.
TEST_F(SvmTest, SetsOfNoPointers) {
  REQUIRE_SVM();
  cl_int* memory = Alloc();
  ASSERT_NE(memory, nullptr);
  const Own<cl_kernel> kernel = Kernel("add_one");
  const void* some[] = {nullptr, memory};
  for (const size_t count : {0, 1, 2}) {
    EXPECT_CL(
        "clSetKernelExecInfo.svm_ptrs_null", CL_SUCCESS,
        clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, count * sizeof(void*), some));
    EXPECT_CL("clSetKernelExecInfo.svm_ptrs_empty", CL_SUCCESS,
              clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, 0, nullptr));
  }
  const Own<cl_mem> buffer = BufferOf(Counting(kCount, 0));
  SetArg(kernel, 0, buffer);
  ASSERT_EQ(Launch(queue(), kernel, kCount), CL_SUCCESS);
  EXPECT_EQ(Read<cl_int>(buffer, kCount), Counting(kCount, 1));
  clSVMFree(context(), memory);
}

// Copies, fills and migrations of shared memory do what they say, also to and from ordinary host
// memory.
TEST_F(SvmTest, CopiesFillsMigrates) {
  REQUIRE_SVM();
  cl_int* first = Alloc();
  cl_int* second = Alloc();
  std::vector<cl_int> host = Counting(kCount), back(kCount, 0);
  ASSERT_CL("clEnqueueSVMMemcpy.from_host", CL_SUCCESS,
            clEnqueueSVMMemcpy(queue(), CL_TRUE, first, host.data(), kBytes, 0, nullptr, nullptr));
  ASSERT_CL("clEnqueueSVMMemcpy.plain", CL_SUCCESS,
            clEnqueueSVMMemcpy(queue(), CL_FALSE, second, first, kBytes, 0, nullptr, nullptr));
  const void* both[] = {first, second};
  const size_t sizes[] = {kBytes, 0};
  ASSERT_CL("clEnqueueSVMMigrateMem.plain", CL_SUCCESS,
            clEnqueueSVMMigrateMem(queue(), 2, both, sizes, 0, 0, nullptr, nullptr));
  ASSERT_CL("clEnqueueSVMMigrateMem.to_host", CL_SUCCESS,
            clEnqueueSVMMigrateMem(queue(), 1, both, nullptr, CL_MIGRATE_MEM_OBJECT_HOST, 0,
                                   nullptr, nullptr));
  ASSERT_CL("clEnqueueSVMMemcpy.to_host", CL_SUCCESS,
            clEnqueueSVMMemcpy(queue(), CL_TRUE, back.data(), second, kBytes, 0, nullptr, nullptr));
  EXPECT_EQ(back, host);
  const cl_int pattern[2] = {5, 6};
  ASSERT_CL("clEnqueueSVMMemFill.plain", CL_SUCCESS,
            clEnqueueSVMMemFill(queue(), first, pattern, sizeof(pattern), kBytes / 2, 0, nullptr,
                                nullptr));
  ASSERT_EQ(clEnqueueSVMMemcpy(queue(), CL_TRUE, back.data(), first, kBytes, 0, nullptr, nullptr),
            CL_SUCCESS);
  for (size_t i = 0; i < kCount / 2; ++i) ASSERT_EQ(back[i], pattern[i % 2]);
  EXPECT_TRUE(std::equal(back.begin() + kCount / 2, back.end(), host.begin() + kCount / 2));
  clSVMFree(context(), first);
  clSVMFree(context(), second);
}

struct Freed {
  std::atomic<int> calls{0};
  cl_uint count = 0;
  void* first = nullptr;
};

void CL_CALLBACK FreeThem(cl_command_queue queue, cl_uint count, void* pointers[], void* data) {
  auto* freed = static_cast<Freed*>(data);
  freed->count = count;
  freed->first = pointers[0];
  cl_context context = nullptr;
  clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(context), &context, nullptr);
  for (cl_uint i = 0; i < count; ++i) clSVMFree(context, pointers[i]);
  freed->calls.fetch_add(1);
}

// An enqueued free happens in order, with the application's function where one is given.
TEST_F(SvmTest, EnqueuedFree) {
  REQUIRE_SVM();
  void* plain[] = {Alloc()};
  Own<cl_event> event;
  ASSERT_CL("clEnqueueSVMFree.plain", CL_SUCCESS,
            clEnqueueSVMFree(queue(), 1, plain, nullptr, nullptr, 0, nullptr, event.Out()));
  EXPECT_EQ(clWaitForEvents(1, event.AsList()), CL_SUCCESS);
  void* two[] = {Alloc(), Alloc()};
  void* const first = two[0];
  Freed freed;
  ASSERT_CL("clEnqueueSVMFree.callback", CL_SUCCESS,
            clEnqueueSVMFree(queue(), 2, two, &FreeThem, &freed, 0, nullptr, nullptr));
  two[0] = two[1] = nullptr;  // "The array may be reused after the call returns".
  Finish();
  while (freed.calls.load() == 0) std::this_thread::yield();
  EXPECT_EQ(freed.count, 2u);
  EXPECT_EQ(freed.first, first);
}

// Section 5.2.1: a buffer with CL_MEM_USE_HOST_PTR over shared memory "has the shared memory as the
// underlying storage". Each side has what the other writes, with nothing copied; and it says so.
TEST_F(SvmTest, BufferIsTheSharedMemory) {
  REQUIRE_SVM();
  cl_int* memory = Alloc();
  ASSERT_NE(memory, nullptr);
  Store(memory, Counting(kCount));
  {
    const Own<cl_mem> buffer = MAKE(
        "clCreateBuffer.over_svm",
        clCreateBuffer(context(), CL_MEM_USE_HOST_PTR | CL_MEM_READ_WRITE, kBytes, memory, error));
    ASSERT_NE(buffer.get(), nullptr);
    cl_bool uses = CL_FALSE;
    EXPECT_CL("clGetMemObjectInfo.uses_svm", CL_SUCCESS,
              clGetMemObjectInfo(buffer, CL_MEM_USES_SVM_POINTER, sizeof(uses), &uses, nullptr));
    EXPECT_EQ(uses, static_cast<cl_bool>(CL_TRUE));
    EXPECT_EQ(Read<cl_int>(buffer, kCount), Counting(kCount));
    Store(memory, Counting(kCount, 100));
    EXPECT_EQ(Read<cl_int>(buffer, kCount), Counting(kCount, 100));
    Write(buffer, Counting(10, -10), 5);
    EXPECT_EQ(Load(memory + 5, 10), Counting(10, -10));
    EXPECT_EQ(Load(memory + 15, 1), Counting(1, 115));
    cl_int pattern = 7;
    ASSERT_EQ(clEnqueueFillBuffer(queue(), buffer, &pattern, sizeof(pattern), 64, 64, 0, nullptr,
                                  nullptr),
              CL_SUCCESS);
    EXPECT_EQ(Load(memory + 16, 16), std::vector<cl_int>(16, 7));
    pattern = 8;
    ASSERT_EQ(
        clEnqueueSVMMemFill(queue(), memory, &pattern, sizeof(pattern), 64, 0, nullptr, nullptr),
        CL_SUCCESS);
    EXPECT_EQ(Read<cl_int>(buffer, 16), std::vector<cl_int>(16, 8));
  }
  // The buffer's end is not the memory's.
  EXPECT_EQ(Load(memory + 16, 16), std::vector<cl_int>(16, 7));
  clSVMFree(context(), memory);
}

// Megabytes that travel in pieces, or through the application's mapping, are the same bytes too.
TEST_F(SvmTest, LargeTransfersOfItsBuffer) {
  REQUIRE_SVM();
  constexpr size_t kMany = (4 << 20) / sizeof(cl_int), kSkipped = 1000;
  auto* memory =
      static_cast<cl_int*>(clSVMAlloc(context(), CL_MEM_READ_WRITE, kMany * sizeof(cl_int), 0));
  ASSERT_NE(memory, nullptr);
  const Own<cl_command_queue> quick = Queue();
  const std::vector<cl_int> given = Counting(kMany - kSkipped, 3);
  const size_t bytes = given.size() * sizeof(cl_int);
  const Own<cl_mem> buffer = Buffer(bytes, CL_MEM_USE_HOST_PTR, memory + kSkipped);
  for (const cl_command_queue on : {queue(), quick.get()}) {
    for (const cl_bool blocking : {CL_TRUE, CL_FALSE}) {
      Fill(memory, kMany, -1);
      ASSERT_EQ(
          clEnqueueWriteBuffer(on, buffer, blocking, 0, bytes, given.data(), 0, nullptr, nullptr),
          CL_SUCCESS);
      ASSERT_EQ(clFinish(on), CL_SUCCESS);
      EXPECT_EQ(Load(memory + kSkipped, given.size()), given);
      EXPECT_EQ(Load(memory + kSkipped - 1, 1), Counting(1, -1));
      Fill(memory + kSkipped, 1, 77);
      std::vector<cl_int> got(given.size());
      ASSERT_EQ(
          clEnqueueReadBuffer(on, buffer, blocking, 0, bytes, got.data(), 0, nullptr, nullptr),
          CL_SUCCESS);
      ASSERT_EQ(clFinish(on), CL_SUCCESS);
      EXPECT_EQ(got[0], 77);
      EXPECT_TRUE(std::equal(got.begin() + 1, got.end(), given.begin() + 1));
    }
  }
  clSVMFree(context(), memory);
}

// A mapping of such a buffer is the shared memory itself, from wherever in it the buffer begins.
TEST_F(SvmTest, MappingItsBufferGivesItsAddress) {
  REQUIRE_SVM();
  cl_int* memory = Alloc();
  ASSERT_NE(memory, nullptr);
  Store(memory, Counting(kCount));
  constexpr size_t kFirst = 16;
  {
    const Own<cl_mem> buffer =
        Buffer(kBytes - kFirst * sizeof(cl_int), CL_MEM_USE_HOST_PTR, memory + kFirst);
    void* host = nullptr;
    EXPECT_EQ(clGetMemObjectInfo(buffer, CL_MEM_HOST_PTR, sizeof(host), &host, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(host, memory + kFirst);
    cl_int code = CL_SUCCESS;
    auto* mapped = static_cast<cl_int*>(clEnqueueMapBuffer(
        queue(), buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 8, 64, 0, nullptr, nullptr, &code));
    ASSERT_EQ(code, CL_SUCCESS);
    EXPECT_EQ(mapped, memory + kFirst + 2);
    EXPECT_EQ(mapped[0], 18);
    mapped[1] = 1234;
    ASSERT_EQ(clEnqueueUnmapMemObject(queue(), buffer, mapped, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(Read<cl_int>(buffer, 1, 3), Counting(1, 1234));
    const Own<cl_kernel> kernel = Kernel("add_one");
    ASSERT_EQ(clSetKernelArgSVMPointer(kernel, 0, memory), CL_SUCCESS);
    // Held until the host opens the gate: the mapping shows what the launch before it leaves.
    const Own<cl_event> gate = UserEvent();
    Own<cl_event> is_mapped;
    const size_t count = kCount;
    ASSERT_EQ(clEnqueueNDRangeKernel(queue(), kernel, 1, nullptr, &count, nullptr, 1, gate.AsList(),
                                     nullptr),
              CL_SUCCESS);
    mapped = static_cast<cl_int*>(clEnqueueMapBuffer(queue(), buffer, CL_FALSE, CL_MAP_READ, 0, 64,
                                                     0, nullptr, is_mapped.Out(), &code));
    ASSERT_EQ(code, CL_SUCCESS);
    EXPECT_EQ(mapped, memory + kFirst);
    EXPECT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    ASSERT_EQ(clWaitForEvents(1, is_mapped.AsList()), CL_SUCCESS);
    EXPECT_EQ(mapped[0], 17);
    ASSERT_EQ(clEnqueueUnmapMemObject(queue(), buffer, mapped, 0, nullptr, nullptr), CL_SUCCESS);
    Finish();
  }
  clSVMFree(context(), memory);
}

// A kernel that gets the buffer and one that gets the pointer work on one memory, and an address
// that a kernel takes of the buffer is the shared one. Lists go from buffer to buffer.
TEST_F(SvmTest, KernelsSeeOneMemory) {
  REQUIRE_SVM();
  const Own<cl_program> program = Program(
      "typedef struct Node { global struct Node* next; long value; } Node;"
      "kernel void chain(global Node* a, global Node* b) { for (int i = 0; i < 8; ++i) {"
      " a[i].value = i; a[i].next = b + i; b[i].value = 100; b[i].next = i < 7 ? a + i + 1 : 0; } }"
      "kernel void sum(global Node* node, global long* out) { long sum = 0;"
      " for (; node; node = node->next) sum += node->value; *out = sum; }");
  struct Node {
    Node* next;
    cl_long value;
  };
  constexpr size_t kNodes = 8 * sizeof(Node);
  auto* first = reinterpret_cast<Node*>(Alloc());
  auto* second = reinterpret_cast<Node*>(Alloc());
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  {
    const Own<cl_mem> a = Buffer(kNodes, CL_MEM_USE_HOST_PTR, first);
    const Own<cl_mem> b = Buffer(kNodes, CL_MEM_USE_HOST_PTR, second + 16);
    const Own<cl_kernel> chain = Kernel(program, "chain");
    SetArg(chain, 0, a);
    SetArg(chain, 1, b);
    ASSERT_EQ(Launch(queue(), chain, 1), CL_SUCCESS);
    const Own<cl_kernel> sum = Kernel(program, "sum");
    const void* others[] = {second};
    ASSERT_EQ(clSetKernelExecInfo(sum, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof(others), others),
              CL_SUCCESS);
    ASSERT_EQ(clSetKernelArgSVMPointer(sum, 0, first), CL_SUCCESS);
    const Own<cl_mem> out = Buffer(sizeof(cl_long));
    SetArg(sum, 1, out);
    ASSERT_EQ(Launch(queue(), sum, 1), CL_SUCCESS);
    EXPECT_EQ(Read<cl_long>(out, 1)[0], 828);
    ASSERT_EQ(Map(first, CL_MAP_READ), CL_SUCCESS);
    ASSERT_EQ(Map(second, CL_MAP_READ), CL_SUCCESS);
    ASSERT_EQ(first[0].next, second + 16);
    ASSERT_EQ(second[16].next, first + 1);
    cl_long seen = 0;
    for (const Node* node = first; node != nullptr; node = node->next) seen += node->value;
    EXPECT_EQ(seen, 828);
    ASSERT_EQ(Unmap(first), CL_SUCCESS);
    ASSERT_EQ(Unmap(second), CL_SUCCESS);
    Finish();
  }
  clSVMFree(context(), first);
  clSVMFree(context(), second);
}

// Parts of such a buffer are parts of the memory, and two buffers of it are one memory.
TEST_F(SvmTest, SubBuffersAndTwins) {
  REQUIRE_SVM();
  const size_t origin = DeviceValue<cl_uint>(device(), CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
  const size_t at = origin / sizeof(cl_int);
  ASSERT_LT(at + 16, kCount);
  cl_int* memory = Alloc();
  ASSERT_NE(memory, nullptr);
  Store(memory, Counting(kCount));
  {
    const Own<cl_mem> buffer = Buffer(kBytes, CL_MEM_USE_HOST_PTR, memory);
    const Own<cl_mem> twin = Buffer(kBytes - origin, CL_MEM_USE_HOST_PTR, memory + at);
    const cl_buffer_region region = {origin, 64};
    cl_int code = CL_SUCCESS;
    const Own<cl_mem> part(
        clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code));
    ASSERT_EQ(code, CL_SUCCESS);
    EXPECT_EQ(Read<cl_int>(part, 16), Counting(16, static_cast<cl_int>(at)));
    const Own<cl_kernel> kernel = Kernel("fill_int");
    SetArg(kernel, 0, part);
    SetArg(kernel, 1, cl_int{-3});
    ASSERT_EQ(Launch(queue(), kernel, 16), CL_SUCCESS);
    EXPECT_EQ(Read<cl_int>(twin, 16), std::vector<cl_int>(16, -3));
    EXPECT_EQ(Load(memory + at, 16), std::vector<cl_int>(16, -3));
    void* mapped = clEnqueueMapBuffer(queue(), part, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 4, 8,
                                      0, nullptr, nullptr, &code);
    ASSERT_EQ(code, CL_SUCCESS);
    EXPECT_EQ(mapped, memory + at + 1);
    static_cast<cl_int*>(mapped)[0] = 55;
    ASSERT_EQ(clEnqueueUnmapMemObject(queue(), part, mapped, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(Read<cl_int>(twin, 1, 1), Counting(1, 55));
    ASSERT_EQ(clEnqueueCopyBuffer(queue(), twin, buffer, 0, 0, 64, 0, nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(Load(memory + 1, 1), Counting(1, 55));
  }
  clSVMFree(context(), memory);
}

// An image made from such a buffer has its pixels there; one over the pointer itself shows them
// there while it is mapped.
TEST_F(SvmTest, Images) {
  REQUIRE_SVM();
  if (!HasImages()) GTEST_SKIP() << "the device has no images (CL_DEVICE_IMAGE_SUPPORT is false)";
  if (!TheHarness().IsSluice() &&
      DeviceValue<cl_device_type>(device(), CL_DEVICE_TYPE) != CL_DEVICE_TYPE_CPU) {
    GTEST_SKIP() << "NVIDIA's driver (580) crashes";
  }
  if (!MayRun("clCreateImage.r_int")) GTEST_SKIP() << "see the table of differences";
  const cl_image_format format = {CL_R, CL_SIGNED_INT32};
  const size_t origin[3] = {}, region[3] = {16, 1, 1};
  cl_int* memory = Alloc();
  ASSERT_NE(memory, nullptr);
  Store(memory, Counting(kCount));
  cl_int code = CL_SUCCESS;
  const auto write = [&](cl_mem image, const std::vector<cl_int>& pixels) {
    EXPECT_EQ(clEnqueueWriteImage(queue(), image, CL_TRUE, origin, region, 0, 0, pixels.data(), 0,
                                  nullptr, nullptr),
              CL_SUCCESS);
  };
  const auto map = [&](cl_mem image) {
    size_t row = 0;
    void* mapped = clEnqueueMapImage(queue(), image, CL_TRUE, CL_MAP_READ, origin, region, &row,
                                     nullptr, 0, nullptr, nullptr, &code);
    EXPECT_EQ(code, CL_SUCCESS);
    return static_cast<cl_int*>(mapped);
  };
  {
    const Own<cl_mem> buffer = Buffer(kBytes, CL_MEM_USE_HOST_PTR, memory);
    cl_image_desc desc = {};
    desc.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER;
    desc.image_width = 16;
    desc.buffer = buffer;
    const Own<cl_mem> image(
        clCreateImage(context(), CL_MEM_READ_WRITE, &format, &desc, nullptr, &code));
    ASSERT_EQ(code, CL_SUCCESS);
    write(image, Counting(16, 900));
    EXPECT_EQ(Load(memory, 17).back(), 16);
    EXPECT_EQ(Load(memory, 16), Counting(16, 900));
    Fill(memory + 3, 1, 5);
    cl_int* mapped = map(image);
    EXPECT_EQ(mapped, memory);
    EXPECT_EQ(mapped[3], 5);
    EXPECT_EQ(clEnqueueUnmapMemObject(queue(), image, mapped, 0, nullptr, nullptr), CL_SUCCESS);
    Finish();
  }
  {
    Fill(memory, 64, 1);
    cl_image_desc desc = {};
    desc.image_type = CL_MEM_OBJECT_IMAGE2D;
    desc.image_width = 16;
    desc.image_height = 4;
    const Own<cl_mem> image(clCreateImage(context(), CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                          &format, &desc, memory, &code));
    ASSERT_EQ(code, CL_SUCCESS);
    write(image, Counting(16, 20));
    cl_int* mapped = map(image);
    EXPECT_EQ(mapped, memory);
    EXPECT_TRUE(std::equal(mapped, mapped + 16, Counting(16, 20).begin()));
    EXPECT_EQ(mapped[16], 1);
    EXPECT_EQ(clEnqueueUnmapMemObject(queue(), image, mapped, 0, nullptr, nullptr), CL_SUCCESS);
    Finish();
  }
  clSVMFree(context(), memory);
}

// Section 5.2.1: CL_INVALID_BUFFER_SIZE if the size is larger than the shared memory.
TEST_F(SvmTest, BufferLargerThanTheMemory) {
  REQUIRE_SVM();
  cl_int* memory = Alloc();
  ASSERT_NE(memory, nullptr);
  EXPECT_CREATE("clCreateBuffer.larger_than_svm", CL_INVALID_BUFFER_SIZE,
                clCreateBuffer(context(), CL_MEM_USE_HOST_PTR, kBytes + 1, memory, error));
  clSVMFree(context(), memory);
}

// Each wrong argument has its code, or no memory.
TEST_F(SvmTest, Refusals) {
  REQUIRE_SVM();
  cl_int* memory = Alloc();
  cl_int pattern = 0;
  const auto allocated = [&](cl_svm_mem_flags flags, size_t bytes, cl_uint alignment) {
    void* got = clSVMAlloc(context(), flags, bytes, alignment);
    clSVMFree(context(), got);
    return got == nullptr ? CL_INVALID_VALUE : CL_SUCCESS;
  };
  EXPECT_CL("clSVMAlloc.zero_size", CL_INVALID_VALUE, allocated(CL_MEM_READ_WRITE, 0, 0));
  EXPECT_CL("clSVMAlloc.unknown_flag", CL_INVALID_VALUE,
            allocated(cl_svm_mem_flags{1} << 40, 64, 0));
  EXPECT_CL("clSVMAlloc.odd_alignment", CL_INVALID_VALUE, allocated(CL_MEM_READ_WRITE, 64, 3));
  EXPECT_CL("clSVMAlloc.huge", CL_INVALID_VALUE, allocated(CL_MEM_READ_WRITE, ~size_t{0} / 2, 0));
  EXPECT_CL("clEnqueueSVMMap.null", CL_INVALID_VALUE,
            clEnqueueSVMMap(queue(), CL_TRUE, CL_MAP_READ, nullptr, kBytes, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueSVMMap.zero_size", CL_INVALID_VALUE,
            clEnqueueSVMMap(queue(), CL_TRUE, CL_MAP_READ, memory, 0, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueSVMUnmap.null", CL_INVALID_VALUE,
            clEnqueueSVMUnmap(queue(), nullptr, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueSVMMemcpy.null", CL_INVALID_VALUE,
            clEnqueueSVMMemcpy(queue(), CL_TRUE, nullptr, memory, 64, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueSVMMemcpy.overlap", CL_MEM_COPY_OVERLAP,
            clEnqueueSVMMemcpy(queue(), CL_TRUE, memory, memory + 1, 64, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueSVMMemFill.null", CL_INVALID_VALUE,
            clEnqueueSVMMemFill(queue(), nullptr, &pattern, 4, 64, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueSVMMemFill.odd_pattern", CL_INVALID_VALUE,
            clEnqueueSVMMemFill(queue(), memory, &pattern, 3, 63, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueSVMMemFill.size_not_multiple", CL_INVALID_VALUE,
            clEnqueueSVMMemFill(queue(), memory, &pattern, 4, 63, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueSVMFree.null_list", CL_INVALID_VALUE,
            clEnqueueSVMFree(queue(), 1, nullptr, nullptr, nullptr, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueSVMMigrateMem.none", CL_INVALID_VALUE,
            clEnqueueSVMMigrateMem(queue(), 0, nullptr, nullptr, 0, 0, nullptr, nullptr));
  const Own<cl_kernel> kernel = Kernel("fill_int");
  EXPECT_CL("clSetKernelArgSVMPointer.index", CL_INVALID_ARG_INDEX,
            clSetKernelArgSVMPointer(kernel, 7, memory));
  EXPECT_CL("clSetKernelArgSVMPointer.value_argument", CL_INVALID_ARG_VALUE,
            clSetKernelArgSVMPointer(kernel, 1, memory));
  EXPECT_CL("clSetKernelExecInfo.unknown", CL_INVALID_VALUE,
            clSetKernelExecInfo(kernel, 0x7ffe, 8, &memory));
  EXPECT_CL("clSetKernelExecInfo.null_value", CL_INVALID_VALUE,
            clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, 8, nullptr));
  Finish();
  clSVMFree(context(), memory);
}

// Each wrong argument of the enqueues of shared memory has its code.
TEST_F(SvmTest, EnqueueRefusals) {
  REQUIRE_SVM();
  cl_int* memory = Alloc();
  const cl_int pattern = 0;
  const auto map = [&](cl_map_flags flags) {
    return clEnqueueSVMMap(queue(), CL_TRUE, flags, memory, kBytes, 0, nullptr, nullptr);
  };
  const auto fill = [&](size_t offset, const void* with, size_t size) {
    return clEnqueueSVMMemFill(queue(), reinterpret_cast<char*>(memory) + offset, with, size, 64, 0,
                               nullptr, nullptr);
  };
  EXPECT_CL("clEnqueueSVMMap.unknown_flag", CL_INVALID_VALUE, map(1 << 20));
  EXPECT_CL("clEnqueueSVMMap.invalidate_and_read", CL_INVALID_VALUE,
            map(CL_MAP_WRITE_INVALIDATE_REGION | CL_MAP_READ));
  EXPECT_CL("clEnqueueSVMMemFill.null_pattern", CL_INVALID_VALUE, fill(0, nullptr, 4));
  EXPECT_CL("clEnqueueSVMMemFill.zero_pattern", CL_INVALID_VALUE, fill(0, &pattern, 0));
  EXPECT_CL("clEnqueueSVMMemFill.misaligned", CL_INVALID_VALUE, fill(2, &pattern, 4));
  void* list[] = {memory};
  EXPECT_CL("clEnqueueSVMFree.list_without_count", CL_INVALID_VALUE,
            clEnqueueSVMFree(queue(), 0, list, nullptr, nullptr, 0, nullptr, nullptr));
  const void* pointers[] = {memory};
  const size_t beyond[] = {kBytes + 1};
  EXPECT_CL("clEnqueueSVMMigrateMem.unknown_flag", CL_INVALID_VALUE,
            clEnqueueSVMMigrateMem(queue(), 1, pointers, nullptr, 1 << 20, 0, nullptr, nullptr));
  EXPECT_CL("clEnqueueSVMMigrateMem.beyond", CL_INVALID_VALUE,
            clEnqueueSVMMigrateMem(queue(), 1, pointers, beyond, 0, 0, nullptr, nullptr));
  Finish();
  clSVMFree(context(), memory);
}

}  // namespace
}  // namespace sluice::conformance
