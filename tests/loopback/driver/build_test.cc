// SPDX-License-Identifier: Apache-2.0
// Builds, compilations and links of an application while the driver is at work on one.
#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include "tests/loopback/driver/fixture.h"

namespace sluice::client {
namespace {

// Notify function of a call, and whether it was called.
struct Told {
  static void CL_CALLBACK Notify(cl_program program, void* told) {
    static_cast<Told*>(told)->by.set_value(program);
  }
  bool yet() { return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }

  std::promise<cl_program> by;
  std::future<cl_program> future = by.get_future();
};

// A program for both devices of the driver, whose builds run until EndBuild ends the oldest.
class BuildTest : public DriverTest {
 protected:
  enum class Step { kBuild, kCompile };
  static constexpr Step kSteps[] = {Step::kBuild, Step::kCompile};

  void SetUp() override {
    DriverTest::SetUp();
    const cl_device_id both[] = {device_, cpu_};
    cl_int status = 77;
    both_ = api::clCreateContext(nullptr, 2, both, nullptr, nullptr, &status);
    ASSERT_EQ(status, CL_SUCCESS);
    const char* source = "kernel void k() {}";
    program_ = api::clCreateProgramWithSource(both_, 1, &source, nullptr, &status);
    ASSERT_EQ(status, CL_SUCCESS);
    fake_->set_on_build([this](const std::string&) {
      absl::MutexLock lock(&mu_);
      // The worker builds what failed once more, without asking for argument information.
      if (fails_again_ != CL_SUCCESS) return std::exchange(fails_again_, CL_SUCCESS);
      ++running_;
      mu_.Await(absl::Condition(
          +[](BuildTest* test) { return test->ends_ != 0; }, this));
      --ends_;
      --running_;
      fails_again_ = ended_with_;
      return ended_with_;
    });
  }
  void TearDown() override {
    EXPECT_EQ(api::clReleaseProgram(program_), CL_SUCCESS);
    EXPECT_EQ(api::clReleaseContext(both_), CL_SUCCESS);
    DriverTest::TearDown();
  }
  // Lets the driver's oldest build end, for which it waits.
  void EndBuild(cl_int status) {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(
        +[](BuildTest* test) { return test->running_ != 0; }, this));
    ended_with_ = status;
    ++ends_;
    mu_.Await(absl::Condition(
        +[](BuildTest* test) { return test->ends_ == 0; }, this));
  }
  void AwaitBuild() {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(
        +[](BuildTest* test) { return test->running_ != 0; }, this));
  }
  cl_int Start(Step step, Told* told, const char* options = "", cl_uint devices = 0,
               const cl_device_id* list = nullptr) {
    const auto notify = told != nullptr ? &Told::Notify : nullptr;
    if (step == Step::kBuild)
      return api::clBuildProgram(program_, devices, list, options, notify, told);
    return api::clCompileProgram(program_, devices, list, options, 0, nullptr, nullptr, notify,
                                 told);
  }
  std::string Options() {
    char text[64] = "";
    EXPECT_EQ(api::clGetProgramBuildInfo(program_, device_, CL_PROGRAM_BUILD_OPTIONS, sizeof(text),
                                         text, nullptr),
              CL_SUCCESS);
    return text;
  }
  cl_build_status BuildStatus(cl_device_id device) {
    cl_build_status status = 77;
    EXPECT_EQ(api::clGetProgramBuildInfo(program_, device, CL_PROGRAM_BUILD_STATUS, sizeof(status),
                                         &status, nullptr),
              CL_SUCCESS);
    return status;
  }

  cl_context both_ = nullptr;
  cl_program program_ = nullptr;

 private:
  absl::Mutex mu_;
  int running_ = 0;
  int ends_ = 0;
  cl_int ended_with_ = CL_SUCCESS;
  cl_int fails_again_ = CL_SUCCESS;
};

// Sections 5.8.2 and 5.8.3: CL_INVALID_OPERATION while a build or compilation has not completed,
// whichever of the two it is, and with a notify function or without. Nothing of the program changes
// by that, and nobody is notified.
TEST_F(BuildTest, NoOtherBuildBeginsMeanwhile) {
  for (const Step first : kSteps) {
    for (const Step second : kSteps) {
      Told told, never;
      ASSERT_EQ(Start(first, &told, "-DFIRST"), CL_SUCCESS);
      EXPECT_EQ(BuildStatus(device_), CL_BUILD_IN_PROGRESS);
      EXPECT_EQ(Start(second, nullptr, "-DSECOND"), CL_INVALID_OPERATION);
      EXPECT_EQ(Start(second, &never, "-DSECOND"), CL_INVALID_OPERATION);
      EXPECT_EQ(BuildStatus(device_), CL_BUILD_IN_PROGRESS);
      EXPECT_EQ(Options(), "-DFIRST");
      EXPECT_FALSE(told.yet());
      EndBuild(CL_SUCCESS);
      EXPECT_EQ(told.future.get(), program_);
      EXPECT_EQ(BuildStatus(device_), CL_BUILD_SUCCESS);
      EXPECT_FALSE(never.yet());
    }
  }
}

// The same where the first call waits for its build, on another thread.
TEST_F(BuildTest, NoOtherBuildBeginsWhileACallWaits) {
  for (const Step second : kSteps) {
    cl_int ended = 77;
    std::thread other([&] { ended = Start(Step::kBuild, nullptr); });
    AwaitBuild();
    EXPECT_EQ(Start(second, nullptr), CL_INVALID_OPERATION);
    EndBuild(CL_BUILD_PROGRAM_FAILURE);
    other.join();
    EXPECT_EQ(ended, CL_BUILD_PROGRAM_FAILURE);
    EXPECT_EQ(BuildStatus(device_), CL_BUILD_ERROR);
  }
}

// Builds for different devices are no obstacle to each other, but for one that names both.
TEST_F(BuildTest, OtherDevicesMayBeBuiltForMeanwhile) {
  Told told, other;
  ASSERT_EQ(Start(Step::kBuild, &told, "", 1, &device_), CL_SUCCESS);
  EXPECT_EQ(Start(Step::kBuild, nullptr), CL_INVALID_OPERATION);
  EXPECT_EQ(BuildStatus(cpu_), CL_BUILD_NONE);
  EXPECT_EQ(Start(Step::kCompile, &other, "", 1, &cpu_), CL_SUCCESS);
  EndBuild(CL_SUCCESS);
  EndBuild(CL_SUCCESS);
  told.future.get();
  other.future.get();
}

// A program that is being built can neither be linked (section 5.8.4: CL_INVALID_OPERATION) nor
// make kernels (5.9.1: "no successfully built executable"), and afterwards it can.
TEST_F(BuildTest, WhatIsBeingBuiltIsOfNoUseYet) {
  const auto link = [&](cl_int* error) {
    return api::clLinkProgram(both_, 0, nullptr, "", 1, &program_, nullptr, nullptr, error);
  };
  Told told;
  ASSERT_EQ(Start(Step::kCompile, &told), CL_SUCCESS);
  cl_int status = CL_SUCCESS;
  EXPECT_EQ(link(&status), nullptr);
  EXPECT_EQ(status, CL_INVALID_OPERATION);
  EXPECT_EQ(api::clCreateKernel(program_, "k1", &status), nullptr);
  EXPECT_EQ(status, CL_INVALID_PROGRAM_EXECUTABLE);
  EXPECT_EQ(api::clCreateKernelsInProgram(program_, 0, nullptr, nullptr),
            CL_INVALID_PROGRAM_EXECUTABLE);
  EndBuild(CL_SUCCESS);
  told.future.get();
  cl_program linked = nullptr;
  std::thread other([&] { linked = link(&status); });
  EndBuild(CL_SUCCESS);
  other.join();
  EXPECT_EQ(status, CL_SUCCESS);
  EXPECT_EQ(api::clReleaseProgram(linked), CL_SUCCESS);
}

// Options that Sluice refuses by itself are told of as a build that failed.
TEST_F(BuildTest, RefusedOptionsAreABuildThatFailed) {
  Told told;
  ASSERT_EQ(Start(Step::kBuild, &told, "-DLAST"), CL_SUCCESS);
  EndBuild(CL_SUCCESS);
  told.future.get();
  EXPECT_EQ(Start(Step::kBuild, nullptr, "-w -I"), CL_INVALID_BUILD_OPTIONS);
  EXPECT_EQ(Start(Step::kCompile, nullptr, "-w -D"), CL_INVALID_COMPILER_OPTIONS);
  EXPECT_EQ(Options(), "-w -D");
  EXPECT_EQ(BuildStatus(device_), CL_BUILD_ERROR);
}

}  // namespace
}  // namespace sluice::client
