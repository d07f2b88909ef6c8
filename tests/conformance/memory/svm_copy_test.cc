// SPDX-License-Identifier: Apache-2.0
// clEnqueueSVMMemcpy between shared memory and the host's.
#include <algorithm>
#include <functional>

#include "tests/conformance/harness/svm_fixture.h"

namespace sluice::conformance {
namespace {

class SvmCopyTest : public WithSvm {};

// Section 5.6.1: each side of a copy is shared memory or the host's. All four waits for their list
// and what is before them in their queue, and have it done when they have ended.
TEST_F(SvmCopyTest, CopiesOfEveryKindComeInOrder) {
  REQUIRE_SVM();
  constexpr size_t kSmall = 16 * sizeof(cl_int);
  cl_int* const shared[] = {Alloc(), Alloc()};
  for (const cl_command_queue_properties flags :
       {cl_command_queue_properties{0},
        cl_command_queue_properties{CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE}}) {
    if (flags != 0 && !HasOutOfOrder()) continue;
    const Own<cl_command_queue> on = Queue(flags);
    for (const size_t bytes : {kSmall, kBytes}) {
      for (int kind = 0; kind < 4; ++kind) {
        SCOPED_TRACE(kind);
        const bool from_shared = (kind & 1) != 0, to_shared = (kind & 2) != 0;
        const size_t count = bytes / sizeof(cl_int);
        const std::vector<cl_int> values = Counting(count, kind + 1);
        std::vector<cl_int> from(count, 0), to(count, 0), last(count, 0);
        cl_int* const source = from_shared ? shared[0] : from.data();
        cl_int* const destination = to_shared ? shared[1] : to.data();
        const Own<cl_event> gate = UserEvent();
        Own<cl_event> filled, copied, ended;
        // A chain behind the gate: it is the list that orders it in a queue out of order.
        ASSERT_EQ(clEnqueueSVMMemcpy(on, CL_FALSE, source, values.data(), bytes, 1, gate.AsList(),
                                     filled.Out()),
                  CL_SUCCESS);
        ASSERT_CL("clEnqueueSVMMemcpy.every_kind", CL_SUCCESS,
                  clEnqueueSVMMemcpy(on, CL_FALSE, destination, source, bytes, 1, filled.AsList(),
                                     copied.Out()));
        ASSERT_EQ(clEnqueueSVMMemcpy(on, CL_FALSE, last.data(), destination, bytes, 1,
                                     copied.AsList(), ended.Out()),
                  CL_SUCCESS);
        cl_command_type type = 0;
        EXPECT_EQ(clGetEventInfo(copied, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, nullptr),
                  CL_SUCCESS);
        EXPECT_EQ(type, static_cast<cl_command_type>(CL_COMMAND_SVM_MEMCPY));
        ASSERT_EQ(clFlush(on), CL_SUCCESS);
        EXPECT_GT(StatusOf(ended), CL_COMPLETE);
        ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
        ASSERT_EQ(clWaitForEvents(1, ended.AsList()), CL_SUCCESS);
        EXPECT_EQ(last, values);
        std::fill(last.begin(), last.end(), 0);
        ASSERT_EQ(clEnqueueSVMMemcpy(on, CL_TRUE, last.data(), destination, bytes, 1,
                                     ended.AsList(), nullptr),
                  CL_SUCCESS);
        EXPECT_EQ(last, values);
      }
    }
  }
  for (cl_int* memory : shared) clSVMFree(context(), memory);
}

// A copy to the host's memory comes before a later write of the same queue that reads from there.
TEST_F(SvmCopyTest, CopiesToTheHostAreWrittenOn) {
  REQUIRE_SVM();
  if (!MayRun("clEnqueueWriteBuffer.after_pending_read"))
    GTEST_SKIP() << "see the table of differences";
  cl_int* const shared = Alloc();
  const std::vector<cl_int> own = Counting(kCount, 5);
  ASSERT_EQ(clEnqueueSVMMemcpy(queue(), CL_TRUE, shared, own.data(), kBytes, 0, nullptr, nullptr),
            CL_SUCCESS);
  for (const cl_int* source : {static_cast<const cl_int*>(shared), own.data()}) {
    const Own<cl_mem> buffer = Buffer(kBytes);
    std::vector<cl_int> between(kCount, 0);
    const Own<cl_event> gate = UserEvent();
    ASSERT_EQ(clEnqueueSVMMemcpy(queue(), CL_FALSE, between.data(), source, kBytes, 1,
                                 gate.AsList(), nullptr),
              CL_SUCCESS);
    ASSERT_EQ(clEnqueueWriteBuffer(queue(), buffer, CL_FALSE, 0, kBytes, between.data(), 0, nullptr,
                                   nullptr),
              CL_SUCCESS);
    ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    EXPECT_EQ(Read<cl_int>(buffer, kCount), own);
  }
  clSVMFree(context(), shared);
}

// Overlapping copies are refused whatever the memory is.
TEST_F(SvmCopyTest, OverlappingCopies) {
  REQUIRE_SVM();
  cl_int* const shared = Alloc();
  std::vector<cl_int> host(kCount, 0);
  for (cl_int* memory : {shared, host.data()}) {
    const std::string name = memory == shared ? "clEnqueueSVMMemcpy." : "clEnqueueSVMMemcpy.host_";
    EXPECT_CL(name + "overlap_after", CL_MEM_COPY_OVERLAP,
              clEnqueueSVMMemcpy(queue(), CL_TRUE, memory + 1, memory, 64, 0, nullptr, nullptr));
    EXPECT_CL(name + "same", CL_MEM_COPY_OVERLAP,
              clEnqueueSVMMemcpy(queue(), CL_FALSE, memory, memory, 64, 0, nullptr, nullptr));
    EXPECT_CL("clEnqueueSVMMemcpy.adjacent", CL_SUCCESS,
              clEnqueueSVMMemcpy(queue(), CL_TRUE, memory, memory + 16, 64, 0, nullptr, nullptr));
  }
  clSVMFree(context(), shared);
}

// In a queue out of order copies, also empty ones, and frees wait for their list, and not for a
// command before them that waits for something else.
TEST_F(SvmCopyTest, WaitsForItsListOnly) {
  REQUIRE_SVM();
  if (!HasOutOfOrder()) GTEST_SKIP() << "the device has no out-of-order queues";
  if (!MayRun("clWaitForEvents.list_only")) GTEST_SKIP() << "see the table of differences";
  const Own<cl_command_queue> on = Queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  cl_int* const shared = Alloc();
  void* freed[] = {Alloc()};
  std::vector<cl_int> from = Counting(kCount), to(kCount, 0);
  const auto copy = [&](void* destination, const void* source, size_t bytes) {
    return [=, &on](const cl_event* list, cl_event* event) {
      return clEnqueueSVMMemcpy(on, CL_FALSE, destination, source, bytes, 1, list, event);
    };
  };
  std::vector<std::function<cl_int(const cl_event* list, cl_event* event)>> all = {
      copy(to.data(), from.data(), kBytes), copy(shared, from.data(), kBytes),
      copy(to.data(), shared, kBytes), [&](const cl_event* list, cl_event* event) {
        return clEnqueueSVMFree(on, 1, freed, nullptr, nullptr, 1, list, event);
      }};
  if (MayRun("clEnqueueSVMMemcpy.zero_size")) all.push_back(copy(to.data(), from.data(), 0));
  const Own<cl_mem> held = Buffer(64);
  const Own<cl_event> gate = UserEvent();
  Own<cl_event> behind_gate;
  const cl_int pattern = 3;
  ASSERT_EQ(clEnqueueFillBuffer(on, held, &pattern, sizeof(pattern), 0, 64, 1, gate.AsList(),
                                behind_gate.Out()),
            CL_SUCCESS);
  for (size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    const Own<cl_event> own = UserEvent();
    Own<cl_event> ended;
    ASSERT_EQ(all[i](own.AsList(), ended.Out()), CL_SUCCESS);
    ASSERT_EQ(clFlush(on), CL_SUCCESS);
    EXPECT_GT(StatusOf(ended), CL_COMPLETE);
    ASSERT_EQ(clSetUserEventStatus(own, CL_COMPLETE), CL_SUCCESS);
    ASSERT_EQ(clWaitForEvents(1, ended.AsList()), CL_SUCCESS);  // The watchdog ends a hang.
  }
  EXPECT_EQ(to, from);
  EXPECT_GT(StatusOf(behind_gate), CL_COMPLETE);
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  ASSERT_EQ(clFinish(on), CL_SUCCESS);
  clSVMFree(context(), shared);
}

// A copy whose list has failed copies nothing, and a blocking one says so.
TEST_F(SvmCopyTest, CopiesFailWithTheirList) {
  REQUIRE_SVM();
  const Own<cl_command_queue> on = Queue();
  std::vector<cl_int> from(16, 1), to(16, 0);
  const Own<cl_event> gate = UserEvent();
  Own<cl_event> copied;
  ASSERT_EQ(
      clEnqueueSVMMemcpy(on, CL_FALSE, to.data(), from.data(), 64, 1, gate.AsList(), copied.Out()),
      CL_SUCCESS);
  ASSERT_EQ(clSetUserEventStatus(gate, -5), CL_SUCCESS);
  EXPECT_EQ(clWaitForEvents(1, copied.AsList()), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  EXPECT_LT(StatusOf(copied), 0);
  EXPECT_CL("clEnqueueSVMMemcpy.failed_wait", CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
            clEnqueueSVMMemcpy(on, CL_TRUE, to.data(), from.data(), 64, 1, gate.AsList(), nullptr));
  EXPECT_EQ(to, std::vector<cl_int>(16, 0));
}

}  // namespace
}  // namespace sluice::conformance
