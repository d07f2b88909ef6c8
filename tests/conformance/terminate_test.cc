// SPDX-License-Identifier: Apache-2.0
// cl_khr_terminate_context, and the hints of cl_khr_priority_hints and cl_khr_throttle_hints.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/harness/fixtures.h"

namespace sluice::conformance {
namespace {

using TerminateContext = cl_int(CL_API_CALL*)(cl_context);

// Of cl_khr_terminate_context; CL_TERMINATED_KHR, as older texts call it, is the same.
constexpr cl_int kTerminated = CL_CONTEXT_TERMINATED_KHR;

class TerminateTest : public WithContext {
 protected:
  void SetUp() override {
    WithContext::SetUp();
    terminate_ = Extension<TerminateContext>("clTerminateContextKHR");
    const bool has =
        DeviceString(device(), CL_DEVICE_EXTENSIONS).find("cl_khr_terminate_context") !=
        std::string::npos;
    ASSERT_TRUE(has || !TheHarness().IsSluice()) << "Sluice must have this extension";
    if (!has || terminate_ == nullptr) GTEST_SKIP() << "the driver has no such extension";
  }
  static void CL_CALLBACK CountNotice(const char*, const void*, size_t, void* count) {
    static_cast<std::atomic<int>*>(count)->fetch_add(1);
  }
  Own<cl_context> Terminatable(std::atomic<int>* notices = nullptr) const {
    const cl_context_properties list[] = {CL_CONTEXT_PLATFORM,
                                          reinterpret_cast<cl_context_properties>(platform()),
                                          CL_CONTEXT_TERMINATE_KHR, CL_TRUE, 0};
    const cl_device_id one = device();
    return MAKE("clCreateContext.terminatable",
                clCreateContext(list, 1, &one, notices == nullptr ? nullptr : &CountNotice, notices,
                                error));
  }

  TerminateContext terminate_ = nullptr;
};

// The device says that it can, and a context is only terminatable if it was made so.
TEST_F(TerminateTest, OnlyIfAskedFor) {
  EXPECT_EQ(DeviceValue<cl_bitfield>(device(), CL_DEVICE_TERMINATE_CAPABILITY_KHR), 1u);
  EXPECT_CL("clTerminateContextKHR.null_context", CL_INVALID_CONTEXT, terminate_(nullptr));
  EXPECT_CL("clTerminateContextKHR.not_asked_for", CL_INVALID_OPERATION, terminate_(context()));
  const cl_device_id one = device();
  const cl_context_properties neither[] = {CL_CONTEXT_TERMINATE_KHR, 7, 0};
  EXPECT_CREATE("clCreateContext.terminate_value", CL_INVALID_PROPERTY,
                clCreateContext(neither, 1, &one, nullptr, nullptr, error));
  const cl_context_properties no[] = {CL_CONTEXT_TERMINATE_KHR, CL_FALSE, 0};
  const Own<cl_context> plain = MAKE("clCreateContext.not_terminatable",
                                     clCreateContext(no, 1, &one, nullptr, nullptr, error));
  EXPECT_CL("clTerminateContextKHR.asked_not_to", CL_INVALID_OPERATION, terminate_(plain));
}

// An object that was released while a command still used it is told of by its destructor callback,
// though the context is terminated before the command has ended.
TEST_F(TerminateTest, TellsOfWhatWasReleasedBefore) {
  const Own<cl_context> doomed = Terminatable();
  cl_int status = CL_SUCCESS;
  const Own<cl_command_queue> queue(clCreateCommandQueue(doomed, device(), 0, &status));
  ASSERT_EQ(status, CL_SUCCESS);
  const Own<cl_event> user(clCreateUserEvent(doomed, &status));
  Own<cl_mem> memory(clCreateBuffer(doomed, CL_MEM_READ_WRITE, 64, nullptr, &status));
  ASSERT_EQ(status, CL_SUCCESS);
  std::atomic<bool> gone = false;
  const auto note = [](cl_mem, void* data) { static_cast<std::atomic<bool>*>(data)->store(true); };
  ASSERT_EQ(clSetMemObjectDestructorCallback(memory, note, &gone), CL_SUCCESS);
  const cl_event wait = user;
  const cl_int seven = 7;
  ASSERT_EQ(clEnqueueFillBuffer(queue, memory, &seven, sizeof(seven), 0, 64, 1, &wait, nullptr),
            CL_SUCCESS);
  memory.Reset();
  EXPECT_FALSE(gone) << "a command still uses it";
  ASSERT_EQ(terminate_(doomed), CL_SUCCESS);
  while (!gone) std::this_thread::yield();  // The watchdog ends a test that hangs.
}

// A kernel that never ends is ended: its event, and one behind it, fail at once with the code of
// the extension; everything else of the context says so too, and can be released.
TEST_F(TerminateTest, EndsAKernelThatNeverEnds) {
  std::atomic<int> notices = 0;
  Own<cl_context> doomed = Terminatable(&notices);
  cl_int status = CL_SUCCESS;
  const Own<cl_command_queue> queue(clCreateCommandQueue(doomed, device(), 0, &status));
  ASSERT_EQ(status, CL_SUCCESS);
  const char* source =
      "__kernel void forever(__global volatile int* stop) { while (*stop == 0) { } }";
  const Own<cl_program> program(clCreateProgramWithSource(doomed, 1, &source, nullptr, &status));
  ASSERT_EQ(clBuildProgram(program, 0, nullptr, "", nullptr, nullptr), CL_SUCCESS);
  const Own<cl_kernel> kernel(clCreateKernel(program, "forever", &status));
  const cl_int zero[4] = {};
  const Own<cl_mem> stop(clCreateBuffer(doomed, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                        sizeof(zero), const_cast<cl_int*>(zero), &status));
  ASSERT_EQ(status, CL_SUCCESS);
  const cl_mem argument = stop;
  ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(argument), &argument), CL_SUCCESS);
  const size_t one = 1;
  Own<cl_event> runs, waits;
  ASSERT_EQ(
      clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &one, nullptr, 0, nullptr, runs.Out()),
      CL_SUCCESS);
  ASSERT_EQ(clEnqueueMarkerWithWaitList(queue, 0, nullptr, waits.Out()), CL_SUCCESS);
  const Own<cl_event> user(clCreateUserEvent(doomed, &status));
  // "Registered event callbacks will be called with CL_TERMINATED_KHR" (section 9.12.1).
  static std::atomic<cl_int> told_running, told_waiting;
  told_running = told_waiting = CL_COMPLETE;
  const auto tell = [](cl_event, cl_int code, void* data) {
    static_cast<std::atomic<cl_int>*>(data)->store(code);
  };
  ASSERT_EQ(clSetEventCallback(runs, CL_COMPLETE, tell, &told_running), CL_SUCCESS);
  ASSERT_EQ(clSetEventCallback(waits, CL_COMPLETE, tell, &told_waiting), CL_SUCCESS);
  ASSERT_EQ(clFlush(queue), CL_SUCCESS);

  const TerminateContext clTerminateContextKHR = terminate_;
  EXPECT_CL("clTerminateContextKHR.plain", CL_SUCCESS, clTerminateContextKHR(doomed));
  for (const cl_event event : {runs.get(), waits.get()}) {
    cl_int state = CL_COMPLETE;
    ASSERT_EQ(
        clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(state), &state, nullptr),
        CL_SUCCESS);
    EXPECT_EQ(state, kTerminated);
    cl_ulong time = 0;
    EXPECT_EQ(
        clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(time), &time, nullptr),
        CL_PROFILING_INFO_NOT_AVAILABLE);
  }
  const cl_event list[] = {runs, waits};
  EXPECT_EQ(clWaitForEvents(2, list), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  EXPECT_CL("clTerminateContextKHR.twice", kTerminated, terminate_(doomed));
  EXPECT_CREATE("clCreateBuffer.terminated", kTerminated,
                clCreateBuffer(doomed, CL_MEM_READ_WRITE, 64, nullptr, error));
  EXPECT_CREATE("clCreateUserEvent.terminated", kTerminated, clCreateUserEvent(doomed, error));
  EXPECT_CL("clEnqueueMarkerWithWaitList.terminated", kTerminated,
            clEnqueueMarkerWithWaitList(queue, 0, nullptr, nullptr));
  EXPECT_CL("clFinish.terminated", kTerminated, clFinish(queue));
  EXPECT_CL("clSetKernelArg.terminated", kTerminated,
            clSetKernelArg(kernel, 0, sizeof(argument), &argument));
  if (DeviceValue<cl_device_svm_capabilities>(device(), CL_DEVICE_SVM_CAPABILITIES) != 0) {
    EXPECT_CL("clSetKernelArgSVMPointer.terminated", kTerminated,
              clSetKernelArgSVMPointer(kernel, 0, nullptr));
    const cl_bool no = CL_FALSE;
    EXPECT_CL(
        "clSetKernelExecInfo.terminated", kTerminated,
        clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM, sizeof(no), &no));
  }
  EXPECT_CL("clSetUserEventStatus.terminated", CL_SUCCESS, clSetUserEventStatus(user, CL_COMPLETE));
  cl_uint references = 0;
  EXPECT_EQ(clGetContextInfo(doomed, CL_CONTEXT_REFERENCE_COUNT, sizeof(references), &references,
                             nullptr),
            CL_SUCCESS);
  // The watchdog ends a test that hangs.
  while (notices == 0 || told_running == CL_COMPLETE || told_waiting == CL_COMPLETE)
    std::this_thread::yield();
  EXPECT_EQ(told_running, kTerminated);
  EXPECT_EQ(told_waiting, kTerminated);
}

// Queries can be performed on it still: what its devices are, and what was said of its objects.
TEST_F(TerminateTest, QueriesGoOn) {
  const Own<cl_context> doomed = Terminatable();
  const char* source = "kernel void k(global int* a) { a[0] = 1; }";
  cl_int status = CL_SUCCESS;
  const Own<cl_program> program(clCreateProgramWithSource(doomed, 1, &source, nullptr, &status));
  ASSERT_EQ(clBuildProgram(program, 0, nullptr, "-DX=1", nullptr, nullptr), CL_SUCCESS);
  const auto formats = [&](cl_context context, cl_mem_object_type type) {
    cl_uint count = 0;
    EXPECT_CL("clGetSupportedImageFormats.terminated", CL_SUCCESS,
              clGetSupportedImageFormats(context, CL_MEM_READ_WRITE, type, 0, nullptr, &count));
    std::vector<cl_image_format> list(count);
    if (count != 0) {
      EXPECT_EQ(
          clGetSupportedImageFormats(context, CL_MEM_READ_WRITE, type, count, list.data(), nullptr),
          CL_SUCCESS);
    }
    std::vector<std::pair<cl_channel_order, cl_channel_type>> pairs;
    for (const cl_image_format& format : list)
      pairs.emplace_back(format.image_channel_order, format.image_channel_data_type);
    return pairs;
  };
  ASSERT_EQ(terminate_(doomed), CL_SUCCESS);
  for (const cl_mem_object_type type : {CL_MEM_OBJECT_IMAGE2D, CL_MEM_OBJECT_IMAGE3D})
    EXPECT_EQ(formats(doomed, type), formats(context(), type));
  EXPECT_CL("clGetSupportedImageFormats.terminated_type", CL_INVALID_VALUE,
            clGetSupportedImageFormats(doomed, CL_MEM_READ_WRITE, CL_MEM_OBJECT_BUFFER, 0, nullptr,
                                       nullptr));
  char text[256] = {};
  EXPECT_EQ(clGetProgramInfo(program, CL_PROGRAM_SOURCE, sizeof(text), text, nullptr), CL_SUCCESS);
  EXPECT_STREQ(text, source);
  EXPECT_EQ(clGetProgramBuildInfo(program, device(), CL_PROGRAM_BUILD_OPTIONS, sizeof(text), text,
                                  nullptr),
            CL_SUCCESS);
  EXPECT_STREQ(text, "-DX=1");
  cl_build_status built = CL_BUILD_NONE;
  EXPECT_EQ(clGetProgramBuildInfo(program, device(), CL_PROGRAM_BUILD_STATUS, sizeof(built), &built,
                                  nullptr),
            CL_SUCCESS);
  EXPECT_EQ(built, CL_BUILD_SUCCESS);
}

// Termination concerns one context: others of the process go on, terminatable ones too, and a new
// one can be made.
TEST_F(TerminateTest, OthersGoOn) {
  const Own<cl_context> doomed = Terminatable();
  const Own<cl_context> other = Terminatable();
  ASSERT_EQ(terminate_(doomed), CL_SUCCESS);
  const Own<cl_context> later = Terminatable();
  for (const cl_context alive : {context(), other.get(), later.get()}) {
    cl_int status = CL_SUCCESS;
    const Own<cl_command_queue> queue(clCreateCommandQueue(alive, device(), 0, &status));
    ASSERT_EQ(status, CL_SUCCESS);
    const Own<cl_mem> buffer(clCreateBuffer(alive, CL_MEM_READ_WRITE, 4, nullptr, &status));
    ASSERT_EQ(status, CL_SUCCESS);
    cl_int value = 4711;
    EXPECT_EQ(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, 4, &value, 0, nullptr, nullptr),
              CL_SUCCESS);
    value = 0;
    EXPECT_EQ(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 4, &value, 0, nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(value, 4711);
  }
}

// A terminatable context's object is another context's also where both sessions call an object of
// theirs by the same number: a kernel does not take it for the one that it has.
TEST_F(TerminateTest, KeepsContextsOfTwoSessionsApart) {
  const Own<cl_context> contexts[] = {Terminatable(), Terminatable()};
  const char* source = "__kernel void k(__global int* out) { out[0] = 1; }";
  cl_int status = CL_SUCCESS;
  std::vector<Own<cl_kernel>> kernels;
  std::vector<Own<cl_mem>> buffers[2];
  for (const Own<cl_context>& one : contexts) {
    const Own<cl_program> program(clCreateProgramWithSource(one, 1, &source, nullptr, &status));
    ASSERT_EQ(clBuildProgram(program, 0, nullptr, "", nullptr, nullptr), CL_SUCCESS);
    kernels.emplace_back(clCreateKernel(program, "k", &status));
    ASSERT_EQ(status, CL_SUCCESS);
    // A session may have served another context before: its numbers are a little higher.
    for (int i = 0; i < 32; ++i) {
      buffers[kernels.size() - 1].emplace_back(
          clCreateBuffer(one, CL_MEM_READ_WRITE, 64, nullptr, &status));
      ASSERT_EQ(status, CL_SUCCESS);
    }
  }
  for (const int own : {0, 1}) {
    for (const Own<cl_mem>& buffer : buffers[own]) {
      const cl_mem argument = buffer;
      ASSERT_EQ(clSetKernelArg(kernels[own], 0, sizeof(argument), &argument), CL_SUCCESS);
      for (const Own<cl_mem>& other : buffers[1 - own]) {
        const cl_mem foreign = other;
        EXPECT_CL("clSetKernelArg.other_session", CL_INVALID_MEM_OBJECT,
                  clSetKernelArg(kernels[own], 0, sizeof(foreign), &foreign));
      }
    }
  }
  for (const Own<cl_context>& one : contexts) EXPECT_EQ(terminate_(one), CL_SUCCESS);
}

// The hints are properties like others: the list is told as it was given, the bits beside it too,
// by both functions that take a list. There is no name twice, and none for a queue on the device
// (sections 9.18.1 and 9.19.1).
TEST_F(TerminateTest, QueueHintsAreTold) {
  if (!TheHarness().IsSluice()) GTEST_SKIP() << "drivers without the hints answer as they like";
  EXPECT_TRUE(HasDeviceExtension(device(), "cl_khr_priority_hints"));
  EXPECT_TRUE(HasDeviceExtension(device(), "cl_khr_throttle_hints"));
  const auto create_khr = Extension<decltype(&clCreateCommandQueueWithPropertiesKHR)>(
      "clCreateCommandQueueWithPropertiesKHR");
  ASSERT_NE(create_khr, nullptr);
  const std::vector<cl_queue_properties> list = {CL_QUEUE_THROTTLE_KHR,
                                                 CL_QUEUE_THROTTLE_LOW_KHR,
                                                 CL_QUEUE_PROPERTIES,
                                                 CL_QUEUE_PROFILING_ENABLE,
                                                 CL_QUEUE_PRIORITY_KHR,
                                                 CL_QUEUE_PRIORITY_HIGH_KHR,
                                                 0};
  for (const bool khr : {false, true}) {
    const Own<cl_command_queue> queue =
        MAKE("clCreateCommandQueueWithProperties.hints",
             khr ? create_khr(context(), device(), list.data(), error)
                 : clCreateCommandQueueWithProperties(context(), device(), list.data(), error));
    size_t bytes = 0;
    ASSERT_EQ(clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES_ARRAY, 0, nullptr, &bytes),
              CL_SUCCESS);
    std::vector<cl_queue_properties> told(bytes / sizeof(cl_queue_properties));
    ASSERT_EQ(clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES_ARRAY, bytes, told.data(), nullptr),
              CL_SUCCESS);
    EXPECT_EQ(told, list);
    cl_command_queue_properties bits = 0;
    EXPECT_EQ(clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof(bits), &bits, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(bits, cl_command_queue_properties{CL_QUEUE_PROFILING_ENABLE});
    EXPECT_EQ(clFinish(queue), CL_SUCCESS);
  }
  for (const cl_queue_properties name : {CL_QUEUE_PRIORITY_KHR, CL_QUEUE_THROTTLE_KHR}) {
    const cl_queue_properties twice[] = {name, 1, name, 1, 0};
    EXPECT_CREATE("clCreateCommandQueueWithProperties.hint_twice", CL_INVALID_VALUE,
                  clCreateCommandQueueWithProperties(context(), device(), twice, error));
    const cl_queue_properties on_device[] = {
        name, 1, CL_QUEUE_PROPERTIES, CL_QUEUE_ON_DEVICE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
        0};
    EXPECT_CREATE("clCreateCommandQueueWithProperties.hint_on_device", CL_INVALID_QUEUE_PROPERTIES,
                  clCreateCommandQueueWithProperties(context(), device(), on_device, error));
    for (const cl_queue_properties value : {0, 3, 5, 8}) {
      const cl_queue_properties wrong[] = {name, value, 0};
      EXPECT_CREATE("clCreateCommandQueueWithProperties.no_hint", CL_INVALID_VALUE,
                    clCreateCommandQueueWithProperties(context(), device(), wrong, error));
    }
  }
}

// Every priority and throttle makes a queue that works; other values, and hints for a queue on the
// device, have their codes.
TEST_F(TerminateTest, QueueHints) {
  for (const cl_queue_properties name : {CL_QUEUE_PRIORITY_KHR, CL_QUEUE_THROTTLE_KHR}) {
    for (const cl_queue_properties value : {1, 2, 4}) {
      const cl_queue_properties list[] = {name, value, 0};
      const Own<cl_command_queue> queue =
          MAKE("clCreateCommandQueueWithProperties.hint",
               clCreateCommandQueueWithProperties(context(), device(), list, error));
      EXPECT_EQ(clFinish(queue), CL_SUCCESS);
    }
    const cl_queue_properties wrong[] = {name, 3, 0};
    EXPECT_CREATE("clCreateCommandQueueWithProperties.hint_value", CL_INVALID_VALUE,
                  clCreateCommandQueueWithProperties(context(), device(), wrong, error));
  }
}

}  // namespace
}  // namespace sluice::conformance
