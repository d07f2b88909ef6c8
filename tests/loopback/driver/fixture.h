// SPDX-License-Identifier: Apache-2.0
// The start of tests of the whole way: the application's side of the real driver, with the fake
// driver's GPU at its other end (daemon_here.h). Owner: each test has its own. Thread: the test's.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "client_icd/base/api.h"
#include "client_icd/objects/context.h"
#include "tests/fake_cl/fake_cl.h"
#include "tests/loopback/driver/daemon_here.h"

namespace sluice::client {

class DriverTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fake_ = &fake::FakeCl::Install();
    DaemonHere& daemon = DaemonHere::Get();
    daemon.SetLimits({});
    cl_platform_id platform = nullptr;
    cl_uint found = 0;
    ASSERT_EQ(api::clGetPlatformIDs(1, &platform, &found), CL_SUCCESS);
    ASSERT_EQ(found, 1u);
    ASSERT_EQ(api::clGetDeviceIDs(platform, CL_DEVICE_TYPE_GPU, 1, &device_, nullptr), CL_SUCCESS);
    ASSERT_EQ(api::clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &cpu_, nullptr), CL_SUCCESS);
    Begin();
  }
  void TearDown() override {
    fake_->ReleaseCommands();
    fake_->ReleaseCallbacks();
    End();
  }
  // A context, and so a session, with a queue.
  void Begin() {
    cl_int status = 77;
    context_ = api::clCreateContext(nullptr, 1, &device_, &OnError, errors_, &status);
    ASSERT_EQ(status, CL_SUCCESS);
    queue_ = Queue();
    fake_->ClearCalls();
  }
  // Their end, and the session's, which the client has seen on return.
  void End() {
    EXPECT_EQ(api::clReleaseCommandQueue(queue_), CL_SUCCESS);
    EndSession();
    EXPECT_EQ(api::clReleaseContext(context_), CL_SUCCESS);
  }
  void EndSession() {
    DaemonHere::Get().EndSessions();
    while (!session().lost()) std::this_thread::yield();
  }
  cl_command_queue Queue(cl_command_queue_properties flags = 0) {
    const cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, flags, 0};
    cl_int status = 77;
    const cl_command_queue queue =
        api::clCreateCommandQueueWithProperties(context_, device_, list, &status);
    EXPECT_EQ(status, CL_SUCCESS);
    return queue;
  }
  cl_mem Buffer(size_t size, cl_mem_flags flags = CL_MEM_READ_WRITE, void* host = nullptr) {
    cl_int status = 77;
    const cl_mem buffer = api::clCreateBuffer(context_, flags, size, host, &status);
    EXPECT_EQ(status, CL_SUCCESS);
    return buffer;
  }
  cl_program Program(const char* source = "kernel void k() {}") {
    cl_int status = 77;
    const cl_program program =
        api::clCreateProgramWithSource(context_, 1, &source, nullptr, &status);
    EXPECT_EQ(status, CL_SUCCESS);
    return program;
  }
  std::string Read(cl_mem buffer, size_t size) {
    std::string bytes(size, '?');
    EXPECT_EQ(api::clEnqueueReadBuffer(queue_, buffer, CL_TRUE, 0, size, bytes.data(), 0, nullptr,
                                       nullptr),
              CL_SUCCESS);
    return bytes;
  }
  static cl_int StatusOf(cl_event event) {
    cl_int status = 77;
    EXPECT_EQ(api::clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
                                  nullptr),
              CL_SUCCESS);
    return status;
  }
  Session& session() { return Context::From(context_)->session(); }
  // How often the application has waited for the worker's answer.
  uint64_t Answers() { return session().stream().waits().answers; }

  // The messages to the context's callback.
  std::vector<std::string> Errors() {
    absl::MutexLock lock(&errors_->mu);
    return errors_->told;
  }
  void AwaitError() {
    absl::MutexLock lock(&errors_->mu);
    errors_->mu.Await(absl::Condition(
        +[](std::vector<std::string>* told) { return !told->empty(); }, &errors_->told));
  }

  fake::FakeCl* fake_ = nullptr;
  cl_device_id device_ = nullptr;  // The GPU.
  cl_device_id cpu_ = nullptr;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;

 private:
  // Outlives the test: the end of its session is told as well.
  struct ErrorsTold {
    absl::Mutex mu;
    std::vector<std::string> told ABSL_GUARDED_BY(mu);
  };
  static void CL_CALLBACK OnError(const char* message, const void*, size_t, void* errors) {
    auto* const all = static_cast<ErrorsTold*>(errors);
    absl::MutexLock lock(&all->mu);
    all->told.emplace_back(message);
  }
  static ErrorsTold* MakeErrors() {
    static auto& all = *new std::vector<std::unique_ptr<ErrorsTold>>;
    all.push_back(std::make_unique<ErrorsTold>());
    return all.back().get();
  }

  ErrorsTold* const errors_ = MakeErrors();
};

}  // namespace sluice::client
