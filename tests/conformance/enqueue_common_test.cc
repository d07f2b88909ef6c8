// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <functional>

#include "tests/conformance/harness/fixtures.h"

namespace sluice::conformance {
namespace {

// The arguments that every enqueue has: a queue, a wait list, an event.
struct Entry {
  const char* name;
  cl_command_type type;
  std::function<cl_int(cl_command_queue, cl_uint, const cl_event*, cl_event*)> call;
};

class EnqueueCommonTest : public WithProgram {
 protected:
  static constexpr size_t kBytes = 4096;

  void SetUp() override {
    WithProgram::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    first_ = BufferOf(std::vector<cl_uchar>(kBytes, 1));
    second_ = BufferOf(std::vector<cl_uchar>(kBytes, 2));
    kernel_ = Kernel("add_one");
    SetArg(kernel_, 0, first_);
    AddBufferEntries();
    AddUnmapEntry();
    AddLaunchEntries();
    if (HasImages()) AddImageEntries();
    if (HasSvm()) AddSvmEntries();
  }

  void AddBufferEntries() {
    Add("clEnqueueReadBuffer", CL_COMMAND_READ_BUFFER,
        [this](auto q, auto n, auto list, auto event) {
          return clEnqueueReadBuffer(q, first_, CL_FALSE, 0, kBytes, host_.data(), n, list, event);
        });
    Add("clEnqueueWriteBuffer", CL_COMMAND_WRITE_BUFFER,
        [this](auto q, auto n, auto list, auto event) {
          return clEnqueueWriteBuffer(q, first_, CL_FALSE, 0, kBytes, host_.data(), n, list, event);
        });
    Add("clEnqueueCopyBuffer", CL_COMMAND_COPY_BUFFER,
        [this](auto q, auto n, auto list, auto event) {
          return clEnqueueCopyBuffer(q, first_, second_, 0, 0, kBytes, n, list, event);
        });
    Add("clEnqueueFillBuffer", CL_COMMAND_FILL_BUFFER,
        [this](auto q, auto n, auto list, auto event) {
          return clEnqueueFillBuffer(q, first_, &pattern_, sizeof(pattern_), 0, kBytes, n, list,
                                     event);
        });
    Add("clEnqueueReadBufferRect", CL_COMMAND_READ_BUFFER_RECT,
        [this](auto q, auto n, auto list, auto event) {
          return clEnqueueReadBufferRect(q, first_, CL_FALSE, zero_.data(), zero_.data(),
                                         region_.data(), 0, 0, 0, 0, host_.data(), n, list, event);
        });
    Add("clEnqueueWriteBufferRect", CL_COMMAND_WRITE_BUFFER_RECT,
        [this](auto q, auto n, auto list, auto event) {
          return clEnqueueWriteBufferRect(q, first_, CL_FALSE, zero_.data(), zero_.data(),
                                          region_.data(), 0, 0, 0, 0, host_.data(), n, list, event);
        });
    Add("clEnqueueCopyBufferRect", CL_COMMAND_COPY_BUFFER_RECT,
        [this](auto q, auto n, auto list, auto event) {
          return clEnqueueCopyBufferRect(q, first_, second_, zero_.data(), zero_.data(),
                                         region_.data(), 0, 0, 0, 0, n, list, event);
        });
    Add("clEnqueueMapBuffer", CL_COMMAND_MAP_BUFFER, [this](auto q, auto n, auto list, auto event) {
      cl_int code = CL_SUCCESS;
      void* pointer =
          clEnqueueMapBuffer(q, first_, CL_FALSE, CL_MAP_READ, 0, kBytes, n, list, event, &code);
      if (code == CL_SUCCESS) mapped_.push_back({first_.get(), pointer});
      return code;
    });
    Add("clEnqueueMigrateMemObjects", CL_COMMAND_MIGRATE_MEM_OBJECTS,
        [this](auto q, auto n, auto list, auto event) {
          const cl_mem memory = first_;
          return clEnqueueMigrateMemObjects(q, 1, &memory, 0, n, list, event);
        });
  }

  void AddUnmapEntry() {
    Add("clEnqueueUnmapMemObject", CL_COMMAND_UNMAP_MEM_OBJECT,
        [this](auto q, auto n, auto list, auto event) {
          cl_int code = CL_SUCCESS;
          void* pointer = clEnqueueMapBuffer(queue(), second_, CL_TRUE, CL_MAP_READ, 0, kBytes, 0,
                                             nullptr, nullptr, &code);
          EXPECT_EQ(code, CL_SUCCESS);
          code = clEnqueueUnmapMemObject(q, second_, pointer, n, list, event);
          if (code != CL_SUCCESS) mapped_.push_back({second_.get(), pointer});
          return code;
        });
  }

  void AddSvmEntries() {
    svm_ = clSVMAlloc(context(), CL_MEM_READ_WRITE, kBytes, 0);
    ASSERT_NE(svm_, nullptr);
    Add("clEnqueueSVMMemFill", CL_COMMAND_SVM_MEMFILL,
        [this](auto q, auto n, auto list, auto event) {
          return clEnqueueSVMMemFill(q, svm_, &pattern_, sizeof(pattern_), kBytes, n, list, event);
        });
    Add("clEnqueueSVMMemcpy", CL_COMMAND_SVM_MEMCPY, [this](auto q, auto n, auto list, auto event) {
      return clEnqueueSVMMemcpy(q, CL_FALSE, svm_, host_.data(), kBytes, n, list, event);
    });
    Add("clEnqueueSVMMigrateMem", CL_COMMAND_SVM_MIGRATE_MEM,
        [this](auto q, auto n, auto list, auto event) {
          const void* memory = svm_;
          return clEnqueueSVMMigrateMem(q, 1, &memory, nullptr, 0, n, list, event);
        });
    Add("clEnqueueSVMMap", CL_COMMAND_SVM_MAP, [this](auto q, auto n, auto list, auto event) {
      return clEnqueueSVMMap(q, CL_FALSE, CL_MAP_READ, svm_, kBytes, n, list, event);
    });
    Add("clEnqueueSVMUnmap", CL_COMMAND_SVM_UNMAP, [this](auto q, auto n, auto list, auto event) {
      return clEnqueueSVMUnmap(q, svm_, n, list, event);
    });
    Add("clEnqueueSVMFree", CL_COMMAND_SVM_FREE, [this](auto q, auto n, auto list, auto event) {
      void* memory = clSVMAlloc(context(), CL_MEM_READ_WRITE, 64, 0);
      const cl_int code = clEnqueueSVMFree(q, 1, &memory, nullptr, nullptr, n, list, event);
      if (code != CL_SUCCESS) clSVMFree(context(), memory);
      return code;
    });
  }

  void AddLaunchEntries() {
    Add("clEnqueueNDRangeKernel", CL_COMMAND_NDRANGE_KERNEL,
        [this](auto q, auto n, auto list, auto event) {
          return clEnqueueNDRangeKernel(q, kernel_, 1, nullptr, &global_, nullptr, n, list, event);
        });
    Add("clEnqueueTask", CL_COMMAND_TASK, [this](auto q, auto n, auto list, auto event) {
      return clEnqueueTask(q, kernel_, n, list, event);
    });
    Add("clEnqueueMarkerWithWaitList", CL_COMMAND_MARKER,
        [](auto q, auto n, auto list, auto event) {
          return clEnqueueMarkerWithWaitList(q, n, list, event);
        });
    Add("clEnqueueBarrierWithWaitList", CL_COMMAND_BARRIER,
        [](auto q, auto n, auto list, auto event) {
          return clEnqueueBarrierWithWaitList(q, n, list, event);
        });
  }

  void AddImageEntries() {
    const cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
    cl_image_desc desc = {};
    desc.image_type = CL_MEM_OBJECT_IMAGE2D;
    desc.image_width = desc.image_height = 16;
    image_ = MAKE("clCreateImage.common",
                  clCreateImage(context(), CL_MEM_READ_WRITE, &format, &desc, nullptr, error));
    other_image_ = MAKE("clCreateImage.common", clCreateImage(context(), CL_MEM_READ_WRITE, &format,
                                                              &desc, nullptr, error));
    Add("clEnqueueReadImage", CL_COMMAND_READ_IMAGE, [this](auto q, auto n, auto list, auto event) {
      return clEnqueueReadImage(q, image_, CL_FALSE, zero_.data(), square_.data(), 0, 0,
                                host_.data(), n, list, event);
    });
    Add("clEnqueueWriteImage", CL_COMMAND_WRITE_IMAGE,
        [this](auto q, auto n, auto list, auto event) {
          return clEnqueueWriteImage(q, image_, CL_FALSE, zero_.data(), square_.data(), 0, 0,
                                     host_.data(), n, list, event);
        });
    Add("clEnqueueCopyImage", CL_COMMAND_COPY_IMAGE, [this](auto q, auto n, auto list, auto event) {
      return clEnqueueCopyImage(q, image_, other_image_, zero_.data(), zero_.data(), square_.data(),
                                n, list, event);
    });
    Add("clEnqueueFillImage", CL_COMMAND_FILL_IMAGE, [this](auto q, auto n, auto list, auto event) {
      return clEnqueueFillImage(q, image_, color_.data(), zero_.data(), square_.data(), n, list,
                                event);
    });
    Add("clEnqueueCopyImageToBuffer", CL_COMMAND_COPY_IMAGE_TO_BUFFER,
        [this](auto q, auto n, auto list, auto event) {
          return clEnqueueCopyImageToBuffer(q, image_, second_, zero_.data(), square_.data(), 0, n,
                                            list, event);
        });
    Add("clEnqueueCopyBufferToImage", CL_COMMAND_COPY_BUFFER_TO_IMAGE,
        [this](auto q, auto n, auto list, auto event) {
          return clEnqueueCopyBufferToImage(q, second_, image_, 0, zero_.data(), square_.data(), n,
                                            list, event);
        });
    Add("clEnqueueMapImage", CL_COMMAND_MAP_IMAGE, [this](auto q, auto n, auto list, auto event) {
      cl_int code = CL_SUCCESS;
      void* pointer =
          clEnqueueMapImage(q, image_, CL_FALSE, CL_MAP_READ, zero_.data(), square_.data(),
                            &row_pitch_, nullptr, n, list, event, &code);
      if (code == CL_SUCCESS) mapped_.push_back({image_.get(), pointer});
      return code;
    });
  }

  void TearDown() override {
    for (const Mapped& one : mapped_)
      clEnqueueUnmapMemObject(queue(), one.memory, one.pointer, 0, nullptr, nullptr);
    if (queue() != nullptr) clFinish(queue());
    if (svm_ != nullptr) clSVMFree(context(), svm_);
  }

  const std::vector<Entry>& entries() const { return entries_; }

 private:
  struct Mapped {
    cl_mem memory;
    void* pointer;
  };

  template <typename Call>
  void Add(const char* name, cl_command_type type, Call call) {
    entries_.push_back({name, type, call});
  }

  std::vector<Entry> entries_;
  std::vector<Mapped> mapped_;
  Own<cl_mem> first_, second_, image_, other_image_;
  Own<cl_kernel> kernel_;
  std::vector<cl_uchar> host_ = std::vector<cl_uchar>(kBytes);
  std::array<size_t, 3> zero_ = {0, 0, 0}, region_ = {16, 4, 2}, square_ = {16, 16, 1};
  std::array<cl_float, 4> color_ = {0, 0, 0, 0};
  size_t global_ = 16, row_pitch_ = 0;
  cl_int pattern_ = 0;
  void* svm_ = nullptr;
};

// Every enqueue gives an event of its own kind, on its queue, in its context, that completes.
TEST_F(EnqueueCommonTest, EventsTellTheirCommand) {
  for (const Entry& entry : entries()) {
    SCOPED_TRACE(entry.name);
    Own<cl_event> event;
    EXPECT_CL(std::string(entry.name) + ".event", CL_SUCCESS,
              entry.call(queue(), 0, nullptr, event.Out()));
    ASSERT_NE(event.get(), nullptr);
    cl_command_type type = 0;
    cl_command_queue seen_queue = nullptr;
    cl_context seen_context = nullptr;
    EXPECT_EQ(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, nullptr),
              CL_SUCCESS);
    if (!Differs(std::string(entry.name) + ".command_type")) {
      EXPECT_EQ(type, entry.type);
    }
    EXPECT_EQ(
        clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof(seen_queue), &seen_queue, nullptr),
        CL_SUCCESS);
    EXPECT_EQ(seen_queue, queue());
    EXPECT_EQ(clGetEventInfo(event, CL_EVENT_CONTEXT, sizeof(seen_context), &seen_context, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(seen_context, context());
    EXPECT_EQ(clWaitForEvents(1, event.AsList()), CL_SUCCESS);
    EXPECT_EQ(StatusOf(event), CL_COMPLETE);
  }
}

// Every enqueue waits for its wait list: it is not complete before its user event is, and completes
// after it.
TEST_F(EnqueueCommonTest, WaitListsHold) {
  for (const Entry& entry : entries()) {
    if (!MayRun(std::string(entry.name) + ".wait_list")) continue;
    SCOPED_TRACE(entry.name);
    const Own<cl_event> gates[2] = {UserEvent(), UserEvent()};
    const cl_event list[2] = {gates[0], gates[1]};
    Own<cl_event> event;
    EXPECT_CL(std::string(entry.name) + ".wait_list", CL_SUCCESS,
              entry.call(queue(), 2, list, event.Out()));
    ASSERT_NE(event.get(), nullptr);
    EXPECT_EQ(clFlush(queue()), CL_SUCCESS);
    EXPECT_EQ(clSetUserEventStatus(gates[0], CL_COMPLETE), CL_SUCCESS);
    EXPECT_GT(StatusOf(event), CL_COMPLETE);
    EXPECT_EQ(clSetUserEventStatus(gates[1], CL_COMPLETE), CL_SUCCESS);
    EXPECT_EQ(clWaitForEvents(1, event.AsList()), CL_SUCCESS);
    EXPECT_EQ(StatusOf(event), CL_COMPLETE);
  }
}

// Every enqueue refuses a wait list that is not one.
TEST_F(EnqueueCommonTest, BadWaitListsAreRefused) {
  const Own<cl_event> gate = UserEvent();
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  const cl_event with_null[2] = {gate, nullptr};
  const Own<cl_context> other = NewContext();
  const Own<cl_event> foreign = MAKE("clCreateUserEvent.foreign", clCreateUserEvent(other, error));
  ASSERT_EQ(clSetUserEventStatus(foreign, CL_COMPLETE), CL_SUCCESS);
  const cl_event mixed[2] = {gate, foreign};
  for (const Entry& entry : entries()) {
    const std::string name = entry.name;
    SCOPED_TRACE(name);
    EXPECT_CL(name + ".count_without_list", CL_INVALID_EVENT_WAIT_LIST,
              entry.call(queue(), 1, nullptr, nullptr));
    EXPECT_CL(name + ".list_without_count", CL_INVALID_EVENT_WAIT_LIST,
              entry.call(queue(), 0, gate.AsList(), nullptr));
    EXPECT_CL(name + ".null_event", CL_INVALID_EVENT_WAIT_LIST,
              entry.call(queue(), 2, with_null, nullptr));
    EXPECT_CL(name + ".foreign_event", CL_INVALID_CONTEXT, entry.call(queue(), 2, mixed, nullptr));
  }
}

// Every enqueue refuses a null queue.
TEST_F(EnqueueCommonTest, NullQueueIsRefused) {
  for (const Entry& entry : entries()) {
    EXPECT_CL(std::string(entry.name) + ".null_queue", CL_INVALID_COMMAND_QUEUE,
              entry.call(nullptr, 0, nullptr, nullptr));
  }
}

// Every enqueue whose wait list fails ends with an error and does not hold up its queue.
TEST_F(EnqueueCommonTest, FailedWaitListsFailTheCommand) {
  for (const Entry& entry : entries()) {
    const std::string name = std::string(entry.name) + ".failed_wait_event";
    if (!MayRun(name)) continue;
    SCOPED_TRACE(name);
    const Own<cl_command_queue> one_queue = Queue();
    const Own<cl_event> gate = UserEvent();
    Own<cl_event> event;
    ASSERT_EQ(entry.call(one_queue, 1, gate.AsList(), event.Out()), CL_SUCCESS);
    ASSERT_EQ(clSetUserEventStatus(gate, -13), CL_SUCCESS);
    EXPECT_EQ(clWaitForEvents(1, event.AsList()), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    EXPECT_LT(StatusOf(event), 0);
    // The queue is usable afterwards; what clFinish reports about the failure is the driver's.
    clFinish(one_queue);
  }
}

// The forms of 1.1 without a wait list of their own do the same as the newer ones.
TEST_F(EnqueueCommonTest, OldMarkersAndBarriers) {
  const Own<cl_command_queue> in_order = Queue();
  Own<cl_event> marker;
  EXPECT_CL("clEnqueueMarker.plain", CL_SUCCESS, clEnqueueMarker(in_order, marker.Out()));
  EXPECT_CL("clEnqueueMarker.null_event", CL_INVALID_VALUE, clEnqueueMarker(in_order, nullptr));
  EXPECT_CL("clEnqueueMarker.null_queue", CL_INVALID_COMMAND_QUEUE,
            clEnqueueMarker(nullptr, marker.Out()));
  EXPECT_CL("clEnqueueBarrier.plain", CL_SUCCESS, clEnqueueBarrier(in_order));
  EXPECT_CL("clEnqueueBarrier.null_queue", CL_INVALID_COMMAND_QUEUE, clEnqueueBarrier(nullptr));
  const Own<cl_event> gate = UserEvent();
  EXPECT_CL("clEnqueueWaitForEvents.plain", CL_SUCCESS,
            clEnqueueWaitForEvents(in_order, 1, gate.AsList()));
  EXPECT_CL("clEnqueueWaitForEvents.null_queue", CL_INVALID_COMMAND_QUEUE,
            clEnqueueWaitForEvents(nullptr, 1, gate.AsList()));
  EXPECT_CL("clEnqueueWaitForEvents.none", CL_INVALID_VALUE,
            clEnqueueWaitForEvents(in_order, 0, gate.AsList()));
  EXPECT_CL("clEnqueueWaitForEvents.null_list", CL_INVALID_VALUE,
            clEnqueueWaitForEvents(in_order, 1, nullptr));
  const cl_event null_event = nullptr;
  EXPECT_CL("clEnqueueWaitForEvents.null_event", CL_INVALID_EVENT,
            clEnqueueWaitForEvents(in_order, 1, &null_event));
  Own<cl_event> after;
  ASSERT_EQ(clEnqueueMarkerWithWaitList(in_order, 0, nullptr, after.Out()), CL_SUCCESS);
  EXPECT_EQ(clFlush(in_order), CL_SUCCESS);
  if (!MayRun("clEnqueueWaitForEvents.plain")) return;
  EXPECT_GT(StatusOf(after), CL_COMPLETE) << "the queue waits for the user event";
  EXPECT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  EXPECT_EQ(clFinish(in_order), CL_SUCCESS);
}

}  // namespace
}  // namespace sluice::conformance
