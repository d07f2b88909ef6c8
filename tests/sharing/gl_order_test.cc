// SPDX-License-Identifier: Apache-2.0
// Tests of what a release waits for in its call (OpenCL 2.2 Extension Specification, section
// 9.5.5), and of its answer if that fails.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

#include "tests/conformance/harness/watchdog.h"
#include "tests/sharing/gl_fixture.h"

namespace sluice::gltest {
namespace {

// Sets a user event if nobody has said for long that it is not needed: a call that waits for the
// event fails its test, and does not hang.
class Rescue {
 public:
  explicit Rescue(cl_event gate)
      : thread_([this, gate] {
          std::unique_lock lock(mu_);
          if (changed_.wait_for(lock, std::chrono::seconds(10), [this] { return over_; })) return;
          needed_ = true;
          clSetUserEventStatus(gate, CL_COMPLETE);
        }) {}
  ~Rescue() {
    if (thread_.joinable()) WasNeeded();
  }
  bool WasNeeded() {
    {
      const std::lock_guard lock(mu_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
    return needed_;
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  bool over_ = false;
  bool needed_ = false;
  std::thread thread_;
};

struct HeldBack {
  const char* name;
  bool by_acquire;
  cl_command_queue_properties flags;
};

class GlOrder : public WithGl {
 protected:
  Own<cl_command_queue> OutOfOrder(cl_command_queue_properties flags) {
    const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES,
                                              flags | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0};
    return MAKE("clCreateCommandQueueWithProperties.gl_order",
                clCreateCommandQueueWithProperties(context(), device(), properties, error));
  }
  Own<cl_mem> Shared(GLuint buffer) {
    return MAKE("clCreateFromGLBuffer.order",
                clCreateFromGLBuffer(context(), CL_MEM_READ_WRITE, buffer, error));
  }
  // Something else of the queue waits for `gate`.
  void HoldBack(const HeldBack& what, cl_command_queue queue, cl_mem other, const cl_event* gate) {
    const cl_uint zero = 0;
    ASSERT_EQ(what.by_acquire ? clEnqueueAcquireGLObjects(queue, 1, &other, 1, gate, nullptr)
                              : clEnqueueFillBuffer(queue, other, &zero, 4, 0, 4, 1, gate, nullptr),
              CL_SUCCESS);
  }
  static void ExpectTimes(cl_event event) {
    cl_ulong before = 0;
    for (const cl_profiling_info name :
         {CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_END}) {
      cl_ulong time = 0;
      EXPECT_EQ(clGetEventProfilingInfo(event, name, sizeof(time), &time, nullptr), CL_SUCCESS);
      EXPECT_GE(time, before);
      before = time;
    }
  }
};

// In a queue that is out of order acquires and releases wait for their lists, and for nothing else.
// They do not wait for a command that waits for a user event, which the calling thread may be about
// to set. The events tell the times all the same.
TEST_P(GlOrder, OutOfOrderWaitsForListsOnly) {
  if (!HasOutOfOrder()) GTEST_SKIP() << "the device has no out-of-order queues";
  for (const HeldBack& held :
       {HeldBack{"behind a fill", false, 0}, HeldBack{"behind an acquire", true, 0},
        HeldBack{"with times", true, CL_QUEUE_PROFILING_ENABLE}}) {
    SCOPED_TRACE(held.name);
    const Own<cl_command_queue> queue = OutOfOrder(held.flags);
    const GLuint buffer = Buffer(nullptr, 100'000);
    const Own<cl_mem> memory = Shared(buffer);
    cl_int status = CL_SUCCESS;
    const Own<cl_mem> other = held.by_acquire
                                  ? Shared(Buffer(nullptr, 4096))
                                  : Own<cl_mem>(clCreateBuffer(context(), 0, 64, nullptr, &status));
    const Own<cl_event> gate(clCreateUserEvent(context(), &status));
    ASSERT_EQ(status, CL_SUCCESS);
    HoldBack(held, queue, other, gate.AsList());
    const cl_mem handle = memory;
    Own<cl_event> acquired, filled, released;
    ASSERT_EQ(clEnqueueAcquireGLObjects(queue, 1, &handle, 0, nullptr, acquired.Out()), CL_SUCCESS);
    const cl_uint value = 0x07070707;
    ASSERT_EQ(clEnqueueFillBuffer(queue, memory, &value, sizeof(value), 0, 100'000, 1,
                                  acquired.AsList(), filled.Out()),
              CL_SUCCESS);
    Rescue rescue(gate);
    EXPECT_EQ(clEnqueueReleaseGLObjects(queue, 1, &handle, 1, filled.AsList(), released.Out()),
              CL_SUCCESS);
    const bool rescued = rescue.WasNeeded();
    EXPECT_FALSE(rescued) << "the release waited for a command that it has nothing to do with";
    // A driver whose queues run in order holds the fill, and the release may not wait for it.
    const bool overtakes = conformance::MayRun("clEnqueueReadBuffer.overtakes_held");
    if (!overtakes) {
      std::puts("left out: the driver's queues run in order, so that only the event tells the end");
    } else {
      EXPECT_EQ(conformance::StatusOf(released), CL_COMPLETE);
      EXPECT_EQ(ReadBuffer(buffer, 100'000), std::vector<uint8_t>(100'000, 7));
    }
    if (!rescued) {
      EXPECT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    }
    EXPECT_EQ(clFinish(queue), CL_SUCCESS);
    EXPECT_EQ(conformance::StatusOf(released), CL_COMPLETE);
    EXPECT_EQ(ReadBuffer(buffer, 100'000), std::vector<uint8_t>(100'000, 7));
    if (held.flags == 0) continue;
    ExpectTimes(acquired);
    ExpectTimes(released);
  }
}

// A command with nothing to do, an acquire of an acquired object or a release of another, waits for
// its list all the same. In an in-order queue so does its successor, whether it has an event or
// not.
TEST_P(GlOrder, NothingToDoWaitsForItsList) {
  const Own<cl_mem> memory = Shared(Buffer(nullptr, 4096));
  const cl_mem handle = memory;
  app().ClearCurrent();  // No release waits in its call.
  for (const bool acquires : {true, false}) {
    for (const bool has_event : {true, false}) {
      SCOPED_TRACE(testing::Message() << (acquires ? "acquire" : "release") << ", "
                                      << (has_event ? "with" : "without") << " an event");
      cl_int status = CL_SUCCESS;
      const Own<cl_event> gate(clCreateUserEvent(context(), &status));
      ASSERT_EQ(status, CL_SUCCESS);
      if (acquires) {
        ASSERT_EQ(Acquire(memory), CL_SUCCESS);
      }
      Own<cl_event> own, after;
      cl_event* const event = has_event ? own.Out() : nullptr;
      ASSERT_EQ(acquires ? clEnqueueAcquireGLObjects(queue(), 1, &handle, 1, gate.AsList(), event)
                         : clEnqueueReleaseGLObjects(queue(), 1, &handle, 1, gate.AsList(), event),
                CL_SUCCESS);
      ASSERT_EQ(clEnqueueMarkerWithWaitList(queue(), 0, nullptr, after.Out()), CL_SUCCESS);
      ASSERT_EQ(clFlush(queue()), CL_SUCCESS);
      // A command that ends without the gate has ended by the time that this has, on another queue.
      const Own<cl_command_queue> other(
          clCreateCommandQueueWithProperties(context(), device(), nullptr, &status));
      Own<cl_event> answered;
      ASSERT_EQ(clEnqueueMarkerWithWaitList(other, 0, nullptr, answered.Out()), CL_SUCCESS);
      ASSERT_EQ(clWaitForEvents(1, answered.AsList()), CL_SUCCESS);
      EXPECT_GT(conformance::StatusOf(after), CL_COMPLETE);
      ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
      EXPECT_EQ(clFinish(queue()), CL_SUCCESS);
      EXPECT_EQ(conformance::StatusOf(after), CL_COMPLETE);
      if (acquires) {
        ASSERT_EQ(Release(memory), CL_SUCCESS);
      }
    }
  }
  app().MakeCurrent();
}

// A release behind a marker of the application's does not wait in its call for what the driver
// perhaps holds the marker behind: PoCL's waits for all before it.
TEST_P(GlOrder, ReleaseBehindAMarkerReturns) {
  if (!HasOutOfOrder()) GTEST_SKIP() << "the device has no out-of-order queues";
  const Own<cl_command_queue> queue = OutOfOrder(0);
  const Own<cl_mem> memory = Shared(Buffer(nullptr, 4096)), other = Shared(Buffer(nullptr, 4096));
  cl_int status = CL_SUCCESS;
  const Own<cl_event> gate(clCreateUserEvent(context(), &status));
  ASSERT_EQ(status, CL_SUCCESS);
  const cl_mem handle = memory, other_handle = other;
  Own<cl_event> acquired, marked, released;
  ASSERT_EQ(clEnqueueAcquireGLObjects(queue, 1, &handle, 0, nullptr, acquired.Out()), CL_SUCCESS);
  ASSERT_EQ(clEnqueueAcquireGLObjects(queue, 1, &other_handle, 1, gate.AsList(), nullptr),
            CL_SUCCESS);
  ASSERT_EQ(clEnqueueMarkerWithWaitList(queue, 1, acquired.AsList(), marked.Out()), CL_SUCCESS);
  Rescue rescue(gate);
  EXPECT_EQ(clEnqueueReleaseGLObjects(queue, 1, &handle, 1, marked.AsList(), released.Out()),
            CL_SUCCESS);
  const bool rescued = rescue.WasNeeded();
  EXPECT_FALSE(rescued);
  if (!rescued) {
    ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  }
  EXPECT_EQ(clWaitForEvents(1, released.AsList()), CL_SUCCESS);
  ASSERT_EQ(clEnqueueReleaseGLObjects(queue, 1, &other_handle, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(clFinish(queue), CL_SUCCESS);
}

// A wait for all of a queue that is out of order includes acquires and releases: clFinish, a marker
// without a list, and behind a barrier all later commands.
TEST_P(GlOrder, AllOfAQueueCoversThem) {
  if (!HasOutOfOrder()) GTEST_SKIP() << "the device has no out-of-order queues";
  const Own<cl_command_queue> queue = OutOfOrder(0);
  const Own<cl_mem> memory = Shared(Buffer(nullptr, 4096));
  cl_int status = CL_SUCCESS;
  const Own<cl_event> gate(clCreateUserEvent(context(), &status));
  ASSERT_EQ(status, CL_SUCCESS);
  const cl_mem handle = memory;
  Own<cl_event> acquired, marked, filled, released, again;
  ASSERT_EQ(clEnqueueAcquireGLObjects(queue, 1, &handle, 1, gate.AsList(), acquired.Out()),
            CL_SUCCESS);
  ASSERT_EQ(clEnqueueMarkerWithWaitList(queue, 0, nullptr, marked.Out()), CL_SUCCESS);
  ASSERT_EQ(clEnqueueBarrierWithWaitList(queue, 0, nullptr, nullptr), CL_SUCCESS);
  const cl_uint value = 5;
  ASSERT_EQ(clEnqueueFillBuffer(queue, memory, &value, 4, 0, 4096, 0, nullptr, filled.Out()),
            CL_SUCCESS);
  ASSERT_EQ(clEnqueueReleaseGLObjects(queue, 1, &handle, 1, filled.AsList(), released.Out()),
            CL_SUCCESS);
  for (const Own<cl_event>* event : {&acquired, &marked, &filled, &released})
    EXPECT_GT(conformance::StatusOf(*event), CL_COMPLETE);
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  ASSERT_EQ(clWaitForEvents(1, marked.AsList()), CL_SUCCESS);
  EXPECT_EQ(conformance::StatusOf(acquired), CL_COMPLETE);
  ASSERT_EQ(clEnqueueAcquireGLObjects(queue, 1, &handle, 1, released.AsList(), again.Out()),
            CL_SUCCESS);
  ASSERT_EQ(clFinish(queue), CL_SUCCESS);
  for (const Own<cl_event>* event : {&filled, &released, &again})
    EXPECT_EQ(conformance::StatusOf(*event), CL_COMPLETE);
  ASSERT_EQ(Release(memory), CL_SUCCESS);
}

// A release that has waited in its call says there that GL would not take the bytes; once.
TEST_P(GlOrder, ReleaseAnswersWithItsFailure) {
  const GLuint buffer = Buffer(nullptr, 4096);
  const Own<cl_mem> memory = Shared(buffer);
  ASSERT_EQ(Acquire(memory), CL_SUCCESS);
  const cl_uint value = 5;
  ASSERT_EQ(clEnqueueFillBuffer(queue(), memory, &value, 4, 0, 4096, 0, nullptr, nullptr),
            CL_SUCCESS);
  // While the acquire still reads the buffer, Mesa would free the bytes under it.
  ASSERT_EQ(clFinish(queue()), CL_SUCCESS);
  gl().BindBuffer(GL_ARRAY_BUFFER, buffer);
  gl().BufferData(GL_ARRAY_BUFFER, 16, nullptr, GL_STATIC_DRAW);
  gl().BindBuffer(GL_ARRAY_BUFFER, 0);
  Own<cl_event> released;
  EXPECT_EQ(Release(memory, released.Out()), CL_INVALID_GL_OBJECT);
  EXPECT_EQ(released.get(), nullptr);  // A call that fails gives nothing to be released.
  GoOn();
  // It was a release all the same.
  EXPECT_EQ(clEnqueueFillBuffer(queue(), memory, &value, 4, 0, 4096, 0, nullptr, nullptr),
            CL_INVALID_GL_OBJECT);
}

// That an event of its wait list, or of the acquire's before it, has failed is no code of the call:
// the release's event tells it (cl_khr_gl_sharing lists none for clEnqueueReleaseGLObjects).
TEST_P(GlOrder, FailedWaitListIsTheEventsToTell) {
  const Own<cl_mem> memory = Shared(Buffer(nullptr, 4096));
  const cl_mem list[] = {memory};
  for (const bool of_acquire : {true, false}) {
    cl_int status = CL_SUCCESS;
    Own<cl_event> gate(clCreateUserEvent(context(), &status));
    ASSERT_EQ(status, CL_SUCCESS);
    ASSERT_EQ(clSetUserEventStatus(gate, -5), CL_SUCCESS);
    const cl_uint waits = of_acquire ? 1 : 0;
    ASSERT_EQ(clEnqueueAcquireGLObjects(queue(), 1, list, waits,
                                        of_acquire ? gate.AsList() : nullptr, nullptr),
              CL_SUCCESS);
    Own<cl_event> released;
    ASSERT_EQ(clEnqueueReleaseGLObjects(queue(), 1, list, 1 - waits,
                                        of_acquire ? nullptr : gate.AsList(), released.Out()),
              CL_SUCCESS)
        << of_acquire;
    EXPECT_EQ(clWaitForEvents(1, released.AsList()), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    EXPECT_LT(conformance::StatusOf(released), 0) << of_acquire;
    clFinish(queue());
    GoOn();
  }
  ASSERT_EQ(Acquire(memory), CL_SUCCESS) << "it was a release all the same";
  ASSERT_EQ(Release(memory), CL_SUCCESS);
}

// An acquire fails late again and again, and its release while a write is still running behind
// it: the session goes on.
TEST_P(GlOrder, FailuresBehindAWrite) {
  // With a worker under Wine a round takes 40 ms on an idle machine.
  if (GetParam() == Binding::kWgl) conformance::Watchdog::Allow(5);
  constexpr size_t kBytes = 1 << 20;
  const GLuint buffer = Buffer(nullptr, kBytes);
  const Own<cl_mem> memory = Shared(buffer);
  gl().BindBuffer(GL_ARRAY_BUFFER, buffer);
  gl().BufferData(GL_ARRAY_BUFFER, 16, nullptr, GL_STATIC_DRAW);
  gl().BindBuffer(GL_ARRAY_BUFFER, 0);
  const std::vector<uint8_t> bytes(kBytes);
  for (int i = 0; i < 1000; ++i) {
    Own<cl_event> acquired;
    ASSERT_EQ(Acquire(memory, acquired.Out()), CL_SUCCESS) << i;
    clFinish(queue());
    ASSERT_LT(conformance::StatusOf(acquired), 0) << i;
    ASSERT_EQ(clEnqueueWriteBuffer(queue(), memory, CL_FALSE, 0, kBytes, bytes.data(), 0, nullptr,
                                   nullptr),
              CL_SUCCESS)
        << i;
    ASSERT_NE(Release(memory), CL_INVALID_COMMAND_QUEUE) << i;
    clFinish(queue());
    GoOn();
  }
}

// Nor does it hide that its context was terminated meanwhile.
TEST_P(GlOrder, ReleaseAnswersWithTheEndOfItsContext) {
  if (!conformance::HasDeviceExtension(device(), "cl_khr_terminate_context"))
    GTEST_SKIP() << "the device has no cl_khr_terminate_context";
  const auto terminate = Extension<cl_int(CL_API_CALL*)(cl_context)>("clTerminateContextKHR");
  ASSERT_NE(terminate, nullptr);
  std::vector<cl_context_properties> properties = Properties(app());
  const cl_context_properties terminatable[] = {CL_CONTEXT_TERMINATE_KHR, CL_TRUE};
  properties.insert(properties.end() - 1, std::begin(terminatable), std::end(terminatable));
  const cl_device_id one = device();
  const Own<cl_context> doomed =
      MAKE("clCreateContext.gl_doomed",
           clCreateContext(properties.data(), 1, &one, nullptr, nullptr, error));
  cl_int status = CL_SUCCESS;
  const Own<cl_command_queue> queue(
      clCreateCommandQueueWithProperties(doomed, device(), nullptr, &status));
  ASSERT_EQ(status, CL_SUCCESS);
  const char* const source =
      "kernel void spin(global volatile uint* v) { while (v[0] != 12345) v[1] += 1; }";
  const Own<cl_program> program(
      clCreateProgramWithSource(doomed, 1, (const char**)&source, nullptr, &status));
  ASSERT_EQ(clBuildProgram(program, 1, &one, "", nullptr, nullptr), CL_SUCCESS);
  const Own<cl_kernel> spin(clCreateKernel(program, "spin", &status));
  ASSERT_EQ(status, CL_SUCCESS);
  const Own<cl_mem> memory =
      MAKE("clCreateFromGLBuffer.doomed",
           clCreateFromGLBuffer(doomed, CL_MEM_READ_WRITE, Buffer(nullptr, 4096), error));
  conformance::SetArg(spin, 0, memory);
  const cl_mem handle = memory;
  ASSERT_EQ(clEnqueueAcquireGLObjects(queue, 1, &handle, 0, nullptr, nullptr), CL_SUCCESS);
  ASSERT_EQ(conformance::Launch(queue, spin, 1), CL_SUCCESS);
  // Nothing tells if the release is in its wait by then or yet to come: the code is the same.
  std::thread end([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_EQ(terminate(doomed), CL_SUCCESS);
  });
  EXPECT_EQ(clEnqueueReleaseGLObjects(queue, 1, &handle, 0, nullptr, nullptr),
            CL_CONTEXT_TERMINATED_KHR);
  end.join();
}

// Between glBegin and glEnd GL takes no fence, by which an acquire would know what was drawn before
// it: it is refused, with a code of section 9.3.6's list, and works after glEnd. A release needs
// nothing of GL's there.
TEST_P(GlOrder, AcquireBetweenBeginAndEnd) {
  if (es() || gl().Begin == nullptr) GTEST_SKIP() << "this API has no glBegin";
  GLint profile = 0;
  gl().GetIntegerv(GL_CONTEXT_PROFILE_MASK, &profile);
  if ((profile & GL_CONTEXT_CORE_PROFILE_BIT) != 0) GTEST_SKIP() << "a core context has no glBegin";
  if (promise() == Promise::kNoError) GTEST_SKIP() << "GL is promised no call between the two";
  const uint32_t word = 7;
  const GLuint buffer = Buffer(&word, sizeof(word));
  const Own<cl_mem> memory =
      MAKE("clCreateFromGLBuffer.plain",
           clCreateFromGLBuffer(context(), CL_MEM_READ_WRITE, buffer, error));
  GLuint target = 0, color = 0;  // Without one, a context without a surface begins nothing.
  gl().GenFramebuffers(1, &target);
  gl().BindFramebuffer(GL_FRAMEBUFFER, target);
  gl().GenRenderbuffers(1, &color);
  gl().BindRenderbuffer(GL_RENDERBUFFER, color);
  gl().RenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, 8, 8);
  gl().FramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, color);
  ASSERT_EQ(gl().GetError(), static_cast<GLenum>(GL_NO_ERROR));
  gl().Begin(GL_TRIANGLES);
  EXPECT_EQ(Acquire(memory), CL_OUT_OF_RESOURCES);
  gl().End();
  while (gl().GetError() != GL_NO_ERROR) {  // That we asked there is GL_INVALID_OPERATION.
  }
  EXPECT_EQ(Acquire(memory), CL_SUCCESS);
  gl().Begin(GL_TRIANGLES);
  EXPECT_EQ(Release(memory), CL_SUCCESS);
  gl().End();
  EXPECT_EQ(gl().GetError(), static_cast<GLenum>(GL_NO_ERROR));
  EXPECT_EQ(clFinish(queue()), CL_SUCCESS);
}

INSTANTIATE_TEST_SUITE_P(All, GlOrder, testing::ValuesIn(Bindings()), BindingParamName);

}  // namespace
}  // namespace sluice::gltest
