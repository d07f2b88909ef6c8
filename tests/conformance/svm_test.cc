// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "tests/conformance/fixtures.h"

namespace sluice::conformance {
namespace {

// Coarse-grained shared virtual memory, where the device reports it. Where it does not, every entry
// says so.
class SvmTest : public WithProgram {
 protected:
  static constexpr size_t kCount = 1024, kBytes = kCount * sizeof(cl_int);

  bool HasSvm() const {
    return (DeviceValue<cl_device_svm_capabilities>(device(), CL_DEVICE_SVM_CAPABILITIES) &
            CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) != 0;
  }
  cl_int* Alloc() const {
    void* memory = clSVMAlloc(context(), CL_MEM_READ_WRITE, kBytes, 0);
    EXPECT_CL("clSVMAlloc.plain", CL_SUCCESS, memory != nullptr ? CL_SUCCESS : CL_INVALID_VALUE);
    return static_cast<cl_int*>(memory);
  }
  cl_int Map(void* memory, cl_map_flags flags) const {
    return clEnqueueSVMMap(queue(), CL_TRUE, flags, memory, kBytes, 0, nullptr, nullptr);
  }
  cl_int Unmap(void* memory) const {
    return clEnqueueSVMUnmap(queue(), memory, 0, nullptr, nullptr);
  }
};

#define REQUIRE_SVM()                                     \
  if (!HasSvm())                                          \
  GTEST_SKIP() << "the device has no coarse-grained SVM " \
                  "(CL_DEVICE_SVM_CAPABILITIES)"

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

// What the host writes while it has the memory mapped, a kernel sees, and the other way round.
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

// Shared memory can be the host pointer of a buffer, which then says so.
TEST_F(SvmTest, BuffersUseSharedMemory) {
  REQUIRE_SVM();
  cl_int* memory = Alloc();
  {
    const Own<cl_mem> buffer = Buffer(kBytes, CL_MEM_USE_HOST_PTR, memory);
    cl_bool uses = CL_FALSE;
    EXPECT_CL("clGetMemObjectInfo.uses_svm", CL_SUCCESS,
              clGetMemObjectInfo(buffer, CL_MEM_USES_SVM_POINTER, sizeof(uses), &uses, nullptr));
    EXPECT_EQ(uses, static_cast<cl_bool>(CL_TRUE));
    Write(buffer, Counting(kCount));
    EXPECT_EQ(Read<cl_int>(buffer, kCount), Counting(kCount));
  }
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

#undef REQUIRE_SVM

}  // namespace
}  // namespace sluice::conformance
